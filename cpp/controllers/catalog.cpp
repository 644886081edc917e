#include "controllers/catalog.h"

#include <algorithm>

namespace timetrial {

bool Surroundings::has(const std::string& part) const {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return path.find(part) != std::string::npos; });
}

LibraryPtr blas_named(const FilePtr& file, const Names& names, const Surroundings& around) {
    for (const auto& make : {make_openblas, make_blis, make_mkl, make_atlas, make_any_cblas})
        if (LibraryPtr found = make(file, names, around)) return found;
    return nullptr;
}

std::vector<LibraryPtr> controllers_of(const FilePtr& file, const Surroundings& around) {
    std::vector<LibraryPtr> found;
    for (const char* prefix : {"", "scipy_"}) {
        for (const char* suffix : {"", "64_", "_64"}) {
            if (!found.empty()) continue;
            if (LibraryPtr one = blas_named(file, {prefix, suffix}, around)) found.push_back(one);
        }
    }
    for (const auto& make : {make_aten, make_onednn, make_tbb, make_openmp})
        if (LibraryPtr one = make(file, around)) found.push_back(one);
    return found;
}

}  // namespace timetrial
