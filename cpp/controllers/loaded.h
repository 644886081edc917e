// The numerical libraries that this process has loaded, whoever loaded them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace timetrial {

// See timetrial/libraries.h for the fields.
struct LoadedLibrary {
    std::string path;
    std::string kind;
    std::string vendor;
    std::string version;
    std::string kernel;
    std::string kernel_getter;
    std::optional<int> threads;
    std::string threads_getter;
};

// Every file that is mapped and defines the functions of a BLAS or of an OpenMP runtime itself, in the order
// of their addresses. Loads nothing. Some of the getters make a library that nobody used yet initialize
// itself; two kinds that could end the process then are not asked: MKL's dispatcher before it has loaded its
// parts, and LLVM's OpenMP when there are two copies of it.
std::vector<LoadedLibrary> loaded_libraries();

}  // namespace timetrial
