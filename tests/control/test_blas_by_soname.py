"""`blas.library` of a framework that finds its BLAS by name: links in front, judged by what is mapped."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control.libraries import judge_library, link_libraries
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch
from timetrial.library_files import available
from timetrial.processes.events import Reading

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted" / "adapter.py"
NAMES = ("openblas-pthread", "openblas-serial", "blis-openmp", "atlas", "reference", "mkl")

# The NumPy framework of the tests; it opens a BLAS by name as a library that is linked to it would.
ADAPTER = """
import ctypes
import importlib.util

spec = importlib.util.spec_from_file_location("planted_base", {path!r})
base = importlib.util.module_from_spec(spec)
spec.loader.exec_module(base)


class Adapter(base.Adapter):
    def load(self, settings):
        super().load(settings)
        self.blas = ctypes.CDLL({opened!r})
        one = ctypes.c_int(1)
        x = (ctypes.c_float * 1)(3.0)
        self.blas.sdot_.restype = ctypes.c_float
        assert self.blas.sdot_(ctypes.byref(one), x, ctypes.byref(one), x, ctypes.byref(one)) == 9.0
"""

ENVIRONMENT = """
[[versions]]
version = "1"
modules = {numpy = "numpy"}
serves = ">=1.0"

[versions.settings."blas.library"]
soname = "libblas.so.3"
"""


def framework(folder: Path, opened: str = "libblas.so.3") -> Path:
    made = folder / "framework"
    made.mkdir()
    (made / "adapter.py").write_text(ADAPTER.format(path=str(PLANTED), opened=opened))
    (made / "environment.toml").write_text(ENVIRONMENT)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_each_blas_is_found_by_name(tmp_path: Path, name: str) -> None:
    if name not in available("blas"):
        pytest.skip(f"{name} is not installed")
    plan = make_plan(tmp_path / "launch", str(framework(tmp_path)), settings={"blas.library": name})
    validate_settings(plan.case, resolve(plan.case))
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    (setting,) = (one for one in record.settings if one.name == "blas.library")
    assert setting.status == "applied", setting
    assert setting.effective is not None
    assert setting.effective in {one.path for one in record.libraries}
    assert record.environment["LD_LIBRARY_PATH"].startswith(str(tmp_path / "launch"))


def test_one_that_opens_another_is_a_mismatch(tmp_path: Path) -> None:
    if not {"reference", "blis-openmp"} <= available("blas").keys():
        pytest.skip("needs two libraries of Debian")
    opened = str(available("blas")["blis-openmp"])
    plan = make_plan(
        tmp_path / "launch", str(framework(tmp_path, opened)), settings={"blas.library": "reference"}
    )
    record = run_launch(plan)
    assert record.outcome == "mismatch", words(record)
    assert record.reason == f"blas.library asked reference, in force {opened}"


def test_a_library_that_cannot_stand_in_is_refused(tmp_path: Path) -> None:
    """Every name of this one has a prefix."""
    case = Case(str(framework(tmp_path)), workload("mlp"), settings={"blas.library": "openblas-scipy"})
    with pytest.raises(InputError, match=r"blas\.library: .* lacks the functions of a Fortran BLAS .*sgemm_"):
        validate_settings(case, resolve(case))
    with pytest.raises(Unavailable, match="Fortran"):
        validate_settings(case, resolve(case), spanned={"blas.library"})


def test_nobody_asked(tmp_path: Path) -> None:
    case = Case(str(framework(tmp_path)), workload("mlp"))
    contender = resolve(case)
    assert contender.libraries == ()
    assert link_libraries(contender.libraries, tmp_path / "links") == {}
    assert not (tmp_path / "links").exists()


def test_rivals_are_judged_by_name_and_by_kind() -> None:
    chosen = Path("/flavor/libfast.so.1")
    numpy = Path("/env/numpy.libs/libopenblas64_p-r0.so")
    system = Path("/usr/lib/blas/libblas.so.3.11.0")
    for mapped, status in (
        ({chosen}, "applied"),
        ({chosen, numpy}, "applied"),  # NumPy's own is no answer to libblas.so.3
        ({chosen, system}, "unverifiable"),
        ({system}, "ignored"),
        ({numpy}, "ignored"),
    ):
        setting = judge_library("blas.library", "x", chosen, Reading(), frozenset(mapped), "libblas.so.3")
        assert setting.status == status, (mapped, setting)
