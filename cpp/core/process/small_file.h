// Small files of /proc and /sys: read whole, in one or two system calls.
#pragma once

#include <string>

namespace timetrial {

/// The text, or "" where there is no such file (the process may have ended meanwhile).
std::string read_small_file(const std::string& path);

}  // namespace timetrial
