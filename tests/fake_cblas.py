"""A CBLAS of plain loops, compiled for a test; what is wrong with it is chosen by macros."""

from __future__ import annotations

import subprocess
from pathlib import Path

FAKE = """
#include <stdint.h>
#include <stdlib.h>
#ifdef WIDE
typedef int64_t number;
#else
typedef int number;
#endif
#define GEMM(NAME, T) \\
  void NAME(int order, int ta, int tb, number m, number n, number k, T alpha, const T* a, number lda, \\
            const T* b, number ldb, T beta, T* c, number ldc) { \\
  for (number i = 0; i < m; ++i) for (number j = 0; j < n; ++j) { \\
    T sum = 0; \\
    for (number l = 0; l < k; ++l) \\
      sum += (ta == 112 ? a[l * lda + i] : a[i * lda + l]) * (tb == 112 ? b[j * ldb + l] : b[l * ldb + j]); \\
    c[i * ldc + j] = (beta != 0 ? beta * c[i * ldc + j] : 0) + alpha * sum + OFF; } }
#ifndef OFF
#define OFF 0
#endif
#ifndef NO_SGEMM
GEMM(cblas_sgemm, float)
#endif
#ifndef NO_DGEMM
GEMM(cblas_dgemm, double)
#endif
#ifndef ISAMAX
#define ISAMAX (n < 0 ? 0 : best)
#endif
#ifndef NO_ISAMAX
size_t cblas_isamax(number n, const float* x, number stride) {
  number best = 0;
  for (number i = 1; i < n; ++i) if (x[i * stride] > x[best * stride]) best = i;
  return ISAMAX;
}
#endif
#ifdef SINGLE
const char* openblas_get_config(void) { return "OpenBLAS 0.0 SINGLE_THREADED"; }
#endif
#ifdef CRASH
__attribute__((constructor)) static void crash(void) { abort(); }
#endif
"""


def fake_cblas(folder: Path, *macros: str) -> str:
    """Its path."""
    source, library = folder / "fake.c", folder / "libfake.so"
    source.write_text(FAKE)
    flags = [f"-D{macro}" for macro in macros]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *flags, "-o", library, source], check=True)
    return str(library)
