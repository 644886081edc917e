#include "temporary_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace timetrial::test {

TemporaryFile::TemporaryFile(std::string_view content)
    : path_((std::filesystem::temp_directory_path() / "timetrial-test-XXXXXX").string()),
      fd_(mkstemp(path_.data())) {
    if (fd_ < 0) throw std::runtime_error("no temporary file " + path_);
    if (!content.empty()) replace(content);
}

TemporaryFile::~TemporaryFile() {
    close(fd_);
    unlink(path_.c_str());
}

std::string TemporaryFile::content() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
}

void TemporaryFile::replace(std::string_view content) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace timetrial::test
