// A shared object that this process has mapped, and the functions in it.
#pragma once

#include <link.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace timetrial {

class File {
  public:
    // One that is mapped; it stays for as long as this object lives. Loads nothing: see is_open().
    explicit File(const std::string& path);
    // One that the caller opened, and keeps open. What it depends on counts as its own.
    explicit File(void* handle) : handle_(handle), is_ours_(false) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();

    bool is_open() const { return handle_ != nullptr; }
    const std::string& path() const { return path_; }  // as the kernel has it mapped; "" of a handle
    // A function that the file itself defines; null if it does not. Remembered: the linker looks through all
    // symbols of a file, half a millisecond in a large one.
    void* own(const std::string& name) const;
    // One that the file or a library that it depends on defines.
    bool reaches(const std::string& name) const;

    template <typename Function>
    Function* function(const std::string& name) const {
        return reinterpret_cast<Function*>(own(name));
    }

  private:
    void* look_up(const std::string& name) const;

    std::string path_;
    void* handle_;
    link_map* map_ = nullptr;
    bool is_ours_ = true;
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::string, void*> known_;
};

// Files of shared objects that are mapped, each once, in the order of their addresses.
std::vector<std::string> mapped_objects();

}  // namespace timetrial
