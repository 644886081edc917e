// The table of controllers. A new library is one file beside these, and its line here and in catalog.cpp.
#pragma once

#include <string>
#include <vector>

#include "controllers/library.h"

namespace timetrial {

// The other files that are mapped: some questions are dangerous, or meaningless, beside some of them.
struct Surroundings {
    std::vector<std::string> paths;
    int llvm_runtimes = 0;  // copies of LLVM's or Intel's OpenMP

    bool has(const std::string& part) const;  // of a path
};

// Each: the library that a file is, or null. `prefix` and `suffix` stand around the names of a BLAS
// ("scipy_", "64_").
struct Names {
    std::string prefix;
    std::string suffix;
    std::string of(const char* function) const { return prefix + function + suffix; }
};
LibraryPtr make_openblas(const FilePtr& file, const Names& names, const Surroundings& around);
LibraryPtr make_blis(const FilePtr& file, const Names& names, const Surroundings& around);
LibraryPtr make_mkl(const FilePtr& file, const Names& names, const Surroundings& around);
LibraryPtr make_atlas(const FilePtr& file, const Names& names, const Surroundings& around);
LibraryPtr make_any_cblas(const FilePtr& file, const Names& names, const Surroundings& around);
LibraryPtr make_aten(const FilePtr& file, const Surroundings& around);
LibraryPtr make_onednn(const FilePtr& file, const Surroundings& around);
LibraryPtr make_tbb(const FilePtr& file, const Surroundings& around);
LibraryPtr make_openmp(const FilePtr& file, const Surroundings& around);

bool is_llvm_openmp(const File& file);

// The controller of a BLAS whose functions are called by these names; null if it has no cblas_sgemm.
LibraryPtr blas_named(const FilePtr& file, const Names& names, const Surroundings& around);

// All controllers of a file, in the order in which they are to be told a number of threads: some libraries
// pass it on to OpenMP, so OpenMP comes last.
std::vector<LibraryPtr> controllers_of(const FilePtr& file, const Surroundings& around);

}  // namespace timetrial
