"""Settings that only the plug-in and its library can judge are tried before anything starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launching import workload

from timetrial.errors import InputError, Unavailable
from timetrial.experiment.case import Case
from timetrial.launch import resolve, validate_settings
from timetrial.libraries import find

# A CBLAS as small as possible: right for the sizes at which it is probed. Parts are left out or broken by -D.
FAKE_CBLAS = r"""
#include <stdint.h>
#ifdef CRASH
__attribute__((constructor)) static void crash(void) { __builtin_trap(); }
#endif
#ifdef WIDE  // integers of 64 bits
typedef int64_t whole;
#else
typedef int whole;
#endif
size_t cblas_isamax(whole n, const float* x, whole step) {
    size_t best = 0;
    for (whole i = 1; i < n; ++i) if (x[i * step] > x[best * step]) best = i;
    return best;
}
#define GEMM(name, T, OFF)                                                                                   \
    void name(int order, int ta, int tb, whole m, whole n, whole k, T alpha, const T* a, whole lda,          \
              const T* b, whole ldb, T beta, T* c, whole ldc) {                                              \
        for (whole i = 0; i < m; ++i)                                                                        \
            for (whole j = 0; j < n; ++j) {                                                                  \
                T sum = OFF;                                                                                 \
                for (whole p = 0; p < k; ++p)                                                                \
                    sum += (ta == 112 ? a[p * lda + i] : a[i * lda + p]) *                                   \
                           (tb == 112 ? b[j * ldb + p] : b[p * ldb + j]);                                    \
                c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);                      \
            }                                                                                                \
    }
#ifndef WRONG
#define WRONG 0
#endif
GEMM(cblas_sgemm, float, WRONG)
#ifndef NO_DGEMM
GEMM(cblas_dgemm, double, 0)
#endif
"""


def fake(folder: Path, *defines: str) -> str:
    source, library = folder / "fake.c", folder / "libfake.so"
    source.write_text("#include <stddef.h>\n" + FAKE_CBLAS)
    flags = ["-x", "c", "-O1", "-shared", "-fPIC", *(f"-D{define}" for define in defines)]
    subprocess.run(["gcc", *flags, "-o", str(library), str(source)], check=True)
    return str(library)


def check(path: str, *, backend: str = "cblas", spanned: tuple[str, ...] = (), **settings: str) -> None:
    case = Case(backend, workload("mlp"), settings={"threads": "1", "blas.library": path, **settings})
    validate_settings(case, resolve(case), spanned=spanned)


@pytest.mark.parametrize("defines", [(), ("WIDE",)])
def test_any_cblas_will_do_however_wide_its_integers(tmp_path: Path, defines: tuple[str, ...]) -> None:
    check(fake(tmp_path, *defines))


@pytest.mark.parametrize(
    ("defines", "said"),
    [
        (("NO_DGEMM",), "lacks the function cblas_dgemm, which every CBLAS has"),
        (("WRONG=1",), "multiplies wrong: cblas_sgemm gives 18.000000 where 17.000000 is right"),
        (("CRASH",), "ends the process with signal"),
    ],
)
def test_a_library_that_is_not_right_is_refused(tmp_path: Path, defines: tuple[str, ...], said: str) -> None:
    path = fake(tmp_path, *defines)
    with pytest.raises(InputError, match=said) as raised:
        check(path)
    assert path in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_library_that_is_no_cblas_is_refused() -> None:
    libm = next(Path("/").glob("lib*/**/libm.so.6"))
    with pytest.raises(InputError, match="is no CBLAS: it exports no cblas_sgemm"):
        check(str(libm))


def test_in_an_axis_it_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="lacks the function"):
        check(fake(tmp_path, "NO_DGEMM"), spanned=("blas.library",))


def test_a_core_type_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"blas.core_type = 'Zen9': OpenBLAS has no such core type"):
        check(str(find("openblas-scipy")), **{"blas.core_type": "Zen9"})


def test_a_core_type_is_for_openblas_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only OpenBLAS has core types"):
        check(fake(tmp_path), **{"blas.core_type": "Haswell"})


def test_each_backend_has_its_ways_of_being_parallel() -> None:
    for backend, parallel in (("eigen", "images"), ("cblas", "images"), ("cblas", "product")):
        case = Case(backend, workload("mlp"), settings={"parallel": parallel})
        validate_settings(case, resolve(case))
    case = Case("eigen", workload("mlp"), settings={"parallel": "product"})
    with pytest.raises(InputError, match="the products of 'eigen' have no threads of their own"):
        validate_settings(case, resolve(case))
