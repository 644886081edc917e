// Any CBLAS, opened by its absolute path: whatever its names are called and however wide its integers are.
#pragma once

#include <cstdint>
#include <string>

#include "controllers/library.h"

namespace timetrial::cblas {

// Values of CBLAS's enumerations, which every library shares (BLAST Forum 2001, appendix B).
inline constexpr int row_major = 101;
inline constexpr int no_transpose = 111;
inline constexpr int transpose = 112;

// C = alpha op(A) op(B) + beta C. Extents are 64 bits wide here for every library: the calling convention of
// x86-64 Linux puts each into a register or stack slot of its own, of which a 32-bit library reads the lower
// half.
template <typename T>
using Gemm = void(int order, int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, T alpha,
                  const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

// The library of this process: one, because the products of the engine are static. Functions are null until
// open().
struct Library {
    std::string path;   // of the file that really holds the code
    std::string names;  // how its functions are called: "scipy_cblas_sgemm"
    int integer_bits = 0;
    Gemm<float>* sgemm = nullptr;
    Gemm<double>* dgemm = nullptr;
    LibraryPtr control;
};

// Opens and probes, or throws Unsupported saying what the file lacks. Before it is loaded the library is told
// `threads`, because some make their pool then, and `core_type` ("": its own choice), which OpenBLAS reads
// once.
void open(const std::string& path, int threads, const std::string& core_type);

const Library& library();

}  // namespace timetrial::cblas
