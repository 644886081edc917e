"""Settings that only the plug-in and its library can judge are tried before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_cblas import fake_cblas
from launching import workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.errors import InputError, Unavailable
from timetrial.library_files import find


def check(path: str, *, backend: str = "cblas", spanned: tuple[str, ...] = (), **settings: str) -> None:
    case = Case(backend, workload("mlp"), settings={"threads": "1", "blas.library": path, **settings})
    validate_settings(case, resolve(case), spanned=spanned)


@pytest.mark.parametrize("defines", [(), ("WIDE",)])
def test_any_cblas_will_do_however_wide_its_integers(tmp_path: Path, defines: tuple[str, ...]) -> None:
    check(fake_cblas(tmp_path, *defines))


@pytest.mark.parametrize(
    ("defines", "said"),
    [
        (("NO_DGEMM",), "lacks the function cblas_dgemm, which every CBLAS has"),
        (("OFF=1",), "multiplies wrong: cblas_sgemm gives 18.000000 where 17.000000 is right"),
        (("CRASH",), "was ended by SIG[A-Z]+ during loading"),
    ],
)
def test_a_library_that_is_not_right_is_refused(tmp_path: Path, defines: tuple[str, ...], said: str) -> None:
    path = fake_cblas(tmp_path, *defines)
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
        check(fake_cblas(tmp_path, "NO_DGEMM"), spanned=("blas.library",))


def test_a_core_type_that_does_not_exist_is_refused() -> None:
    # However many threads are spanned: a word that is wrong is wrong in every row.
    for spanned in ((), ("threads",), ("blas.library",)):
        with pytest.raises(InputError, match=r"blas.core_type = 'Zen9': OpenBLAS has no such core type"):
            check(str(find("openblas-scipy")), spanned=spanned, **{"blas.core_type": "Zen9"})
    with pytest.raises(Unavailable, match="Zen9"):
        check(str(find("openblas-scipy")), spanned=("blas.core_type",), **{"blas.core_type": "Zen9"})


# Called from two threads at once, Debian's serial OpenBLAS gives wrong numbers: seen by the check of a timed
# launch's first losses.
def test_a_library_without_locks_is_called_by_one_thread(tmp_path: Path) -> None:
    serial = fake_cblas(tmp_path, "SINGLE")
    check(serial)
    check(serial, threads="2", parallel="product")
    with pytest.raises(InputError, match="built for one thread and without locks"):
        check(serial, threads="2")
    for setting in ("threads", "blas.library"):
        with pytest.raises(Unavailable, match="expected threads = 1, or another library"):
            check(serial, threads="2", spanned=(setting,))


def test_a_core_type_is_for_openblas_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only OpenBLAS has core types"):
        check(fake_cblas(tmp_path), **{"blas.core_type": "Haswell"})
    with pytest.raises(InputError, match="only OpenBLAS has core types"):
        check(fake_cblas(tmp_path), spanned=("threads",), **{"blas.core_type": "Haswell"})
    with pytest.raises(Unavailable, match="only OpenBLAS has core types"):
        check(fake_cblas(tmp_path), spanned=("blas.library",), **{"blas.core_type": "Haswell"})


def test_each_backend_has_its_ways_of_being_parallel() -> None:
    for backend, parallel in (("eigen", "images"), ("cblas", "images"), ("cblas", "product")):
        case = Case(backend, workload("mlp"), settings={"parallel": parallel})
        validate_settings(case, resolve(case))
    case = Case("eigen", workload("mlp"), settings={"parallel": "product"})
    with pytest.raises(InputError, match="the products of 'eigen' have no threads of their own"):
        validate_settings(case, resolve(case))
