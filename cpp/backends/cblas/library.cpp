#include "cblas/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "controllers/catalog.h"
#include "controllers/openblas_cores.h"
#include "timetrial/backend.hpp"

namespace timetrial::cblas {
namespace {

Library opened;

using Isamax = std::size_t(int64_t n, const float* x, int64_t stride);

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw Unsupported("blas.library = '" + path + "' " + why);
}

// Where libraries read how many threads they shall make. OpenBLAS's pthread build does so once, at load.
void announce_threads(int threads) {
    for (const char* variable :
         {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"})
        setenv(variable, std::to_string(threads).c_str(), 1);
}

void announce_core_type(const std::string& core_type) {
    if (core_type.empty()) return;
    const std::string problem = openblas_core_problem(core_type);
    if (!problem.empty()) throw Unsupported("blas.core_type = '" + core_type + "': " + problem);
    setenv("OPENBLAS_CORETYPE", core_type.c_str(), 1);
}

// A CBLAS that somebody has put into the global scope would serve this library's own calls of itself; only
// then is RTLD_DEEPBIND worth its price (the library no longer sees a preloaded allocator).
int open_flags() { return RTLD_NOW | RTLD_LOCAL | (dlsym(RTLD_DEFAULT, "cblas_sgemm") ? RTLD_DEEPBIND : 0); }

std::optional<Names> find_names(void* handle) {
    for (const char* prefix : {"", "scipy_"}) {
        for (const char* suffix : {"", "64_", "_64", "64"}) {
            Names names{prefix, suffix};
            if (dlsym(handle, names.of("cblas_sgemm").c_str())) return names;
        }
    }
    return std::nullopt;
}

template <typename Function>
Function* function(void* handle, const std::string& path, const std::string& name) {
    void* symbol = dlsym(handle, name.c_str());
    if (!symbol) refuse(path, "lacks the function " + name + ", which every CBLAS has");
    return reinterpret_cast<Function*>(symbol);
}

// With n = 0xffffffff'00000003 a library of 32-bit integers sees three numbers and finds the largest at 2;
// one of 64-bit integers sees a negative count and answers 0 (the trick of libblastrampoline).
int probe_integers(Isamax* isamax, const std::string& path) {
    const float x[] = {1, 2, 3};
    const auto n = static_cast<int64_t>(0xffffffff'00000003ull);
    const std::size_t place = isamax(n, x, 1);
    if (place == 2) return 32;
    if (place == 0 && isamax(3, x, 1) == 2) return 64;
    refuse(path, "is no CBLAS that works: cblas_isamax({1, 2, 3}) answers " + std::to_string(place) +
                     ", expected 2 (or 0, of a library with 64-bit integers)");
}

// Two by three times three by two, with strides and beta, checked exactly: small integers.
template <typename T>
void check_product(Gemm<T>* gemm, const std::string& path, const std::string& name) {
    const T a[] = {1, 2, 3, 0, 4, 5, 6, 0};  // 2 x 3, rows four apart
    const T b[] = {1, 0, 2, 1, 1, 3};        // 2 x 3, used transposed
    T c[] = {10, 20, 30, 40};                // 2 x 2
    const T expected[] = {17, 32, 46, 67};   // c + a b'
    gemm(row_major, no_transpose, transpose, 2, 2, 3, 1, a, 4, b, 3, 1, c, 2);
    for (int i = 0; i < 4; ++i) {
        if (c[i] != expected[i])
            refuse(path, "multiplies wrong: " + name + " gives " + std::to_string(c[i]) + " where " +
                             std::to_string(expected[i]) + " is right");
    }
}

// The file in which a function's code lies: a front such as Debian's libblas.so.3 is another file.
std::string file_of(void* symbol) {
    Dl_info info{};
    if (dladdr(symbol, &info) == 0 || !info.dli_fname) return "";
    return std::filesystem::weakly_canonical(info.dli_fname).string();
}

}  // namespace

void open(const std::string& path, int threads, const std::string& core_type) {
    if (path.empty() || path.front() != '/')
        refuse(path, "is no absolute path: a bare name would open whatever the system has under it");
    if (!std::filesystem::is_regular_file(path)) refuse(path, "is no file");
    if (opened.sgemm) {
        if (file_of(reinterpret_cast<void*>(opened.sgemm)) ==
            std::filesystem::weakly_canonical(path).string())
            return;
        refuse(path,
               "comes too late: this process has opened '" + opened.path + "', and one CBLAS is all it gets");
    }
    announce_threads(threads);
    announce_core_type(core_type);
    // Unmapped again if it is refused: two in one process would be mistaken for one another.
    std::unique_ptr<void, decltype([](void* library) { dlclose(library); })> loaded(
        dlopen(path.c_str(), open_flags()));
    void* const handle = loaded.get();
    if (!handle) refuse(path, std::string("cannot be loaded: ") + dlerror());
    const auto names = find_names(handle);
    if (!names)
        refuse(
            path,
            "is no CBLAS: it exports no cblas_sgemm (nor scipy_cblas_sgemm, nor either with 64_, _64 or 64 "
            "behind)");
    Library found;
    found.names = names->of("cblas_sgemm");
    found.sgemm = function<Gemm<float>>(handle, path, found.names);
    found.dgemm = function<Gemm<double>>(handle, path, names->of("cblas_dgemm"));
    found.integer_bits = probe_integers(function<Isamax>(handle, path, names->of("cblas_isamax")), path);
    const auto file = std::make_shared<File>(handle);
    found.control = blas_named(file, *names, {mapped_objects()});
    if (!core_type.empty() && found.control->vendor() != std::string_view("OpenBLAS"))
        throw Unsupported("blas.core_type = '" + core_type + "', blas.library = '" + path +
                          "': only OpenBLAS has core types");
    found.control->set_threads(1);
    check_product(found.sgemm, path, found.names);
    check_product(found.dgemm, path, names->of("cblas_dgemm"));
    // MKL's dispatcher has loaded its parts for the products, and can be asked and told now.
    found.control = blas_named(file, *names, {mapped_objects()});
    found.control->set_threads(1);
    found.path = file_of(reinterpret_cast<void*>(found.sgemm));
    opened = std::move(found);
    static_cast<void>(loaded.release());  // open for as long as the process lives
}

const Library& library() { return opened; }

}  // namespace timetrial::cblas
