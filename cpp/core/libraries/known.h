// Which mapped files are libraries that compute, schedule or allocate. Data, not code: a new library is a
// line.
#pragma once

#include <string_view>

namespace timetrial {

// "blas", "openmp", "onednn", "framework", "allocator", "backend" (a plug-in of ours); "" for any other file.
std::string_view library_kind(std::string_view path);

}  // namespace timetrial
