// A file of a test, gone with it.
#pragma once

#include <string>
#include <string_view>

namespace timetrial::test {

class TemporaryFile {
  public:
    explicit TemporaryFile(std::string_view content = "");
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile();

    int fd() const { return fd_; }
    const std::string& path() const { return path_; }
    std::string content() const;
    void replace(std::string_view content);

  private:
    std::string path_;
    int fd_;
};

}  // namespace timetrial::test
