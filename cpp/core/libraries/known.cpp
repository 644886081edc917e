#include "libraries/known.h"

namespace timetrial {
namespace {

struct KnownLibrary {
    std::string_view prefix;  // of the file's name; wheels put a hash behind it: libgomp-a34b3233.so.1
    std::string_view kind;
};

constexpr KnownLibrary known_libraries[] = {
    {"libopenblas", "blas"},
    {"libscipy_openblas", "blas"},
    {"libblis", "blas"},
    {"libmkl_", "blas"},
    {"libatlas", "blas"},
    {"libsatlas", "blas"},
    {"libtatlas", "blas"},
    {"libflexiblas", "blas"},
    {"libcblas", "blas"},
    {"libblas", "blas"},
    {"libgomp", "openmp"},
    {"libiomp5", "openmp"},
    {"libomp", "openmp"},
    {"libtbb", "openmp"},
    {"libdnnl", "onednn"},
    {"libmkldnn", "onednn"},
    {"libtorch", "framework"},
    {"libc10", "framework"},
    {"libtensorflow", "framework"},
    {"_pywrap_tensorflow", "framework"},
    {"xla_extension", "framework"},
    {"libjax", "framework"},
    {"libmxnet", "framework"},
    {"libpaddle", "framework"},
    {"libcaffe", "framework"},
    {"libjemalloc", "allocator"},
    {"libtcmalloc", "allocator"},
    {"libmimalloc", "allocator"},
};

}  // namespace

std::string_view library_kind(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (name.find(".so") == std::string_view::npos) return {};
    for (const KnownLibrary& known : known_libraries) {
        if (name.substr(0, known.prefix.size()) == known.prefix) return known.kind;
    }
    const std::string_view folder = path.substr(0, slash == std::string_view::npos ? 0 : slash);
    constexpr std::string_view ours = "/native/backends";
    const bool is_ours = folder.size() >= ours.size() && folder.substr(folder.size() - ours.size()) == ours;
    return is_ours ? "backend" : "";
}

}  // namespace timetrial
