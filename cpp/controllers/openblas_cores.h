// OpenBLAS's core types: the sets of kernels that its builds for many CPUs choose from.
#pragma once

#include <string>
#include <string_view>

namespace timetrial {

// Why this CPU cannot run the kernels of a core type, in words; "" if it can. OpenBLAS itself checks nothing:
// of an unknown name it says so on standard error and takes another, and with a type above the CPU the
// process dies of an illegal instruction.
std::string openblas_core_problem(std::string_view core);

// Whether this CPU could run kernels with wider instructions than those of a core type: "AVX-512", the widest
// that it has and OpenBLAS has kernels for; "" if the core type is as good as it gets, or unknown.
std::string openblas_core_missed(std::string_view core);

}  // namespace timetrial
