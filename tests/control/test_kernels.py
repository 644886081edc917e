"""Which kernels the copies of OpenBLAS chose: judged where asked for, warned of where old."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import kernels
from timetrial.control.kernels import announced, judge_core_type, old_kernels
from timetrial.core import cpu
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch
from timetrial.processes.events import LoadedLibrary

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted"
NUMPY = "/env/lib/python3.7/site-packages/numpy/.libs/libopenblasp-r0.3.7.so"
OWN = "/env/lib/python3.7/site-packages/mxnet/libopenblas.so.0"


def copy(path: str, kernel: str, vendor: str = "OpenBLAS") -> LoadedLibrary:
    getter = "openblas_get_corename()" if kernel else ""
    return LoadedLibrary(path=path, vendor=vendor, kernel=kernel, kernel_getter=getter)


@pytest.mark.parametrize(
    ("loaded", "said", "status", "effective"),
    [
        ([copy(OWN, "Haswell")], [], "applied", "Haswell"),
        ([copy(OWN, "haswell"), copy(NUMPY, "Haswell")], ["Haswell"], "applied", "Haswell"),
        ([copy(OWN, "Prescott")], [], "ignored", "Prescott"),
        ([copy(OWN, "Prescott"), copy(NUMPY, "Haswell")], [], "unverifiable", None),
        ([copy(NUMPY, "Haswell")], ["Haswell", "Prescott"], "unverifiable", None),  # a copy that hides
        ([copy(OWN, "")], [], "unverifiable", None),  # built for one CPU
        ([copy(OWN, ""), copy(NUMPY, "Haswell")], [], "unverifiable", None),
        ([], ["Haswell"], "applied", "Haswell"),
        ([], [], "unverifiable", None),
    ],
)
def test_all_copies_must_have_what_was_asked(
    loaded: list[LoadedLibrary], said: list[str], status: str, effective: str | None
) -> None:
    setting = judge_core_type("Haswell", loaded, said)
    assert (setting.status, setting.effective) == (status, effective), setting
    for one in loaded:
        assert kernels.place(one.path) in setting.how_read


def test_announcements_are_told_from_other_output() -> None:
    assert announced("Core: Haswell\nCore: Prescott\nCore: dump\n  Core: Zen\n") == ["Haswell", "Prescott"]


@pytest.fixture
def avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of OpenBLAS on a CPU that runs all of them."""
    missed = {"Prescott": "AVX-512", "Haswell": "AVX-512"}
    monkeypatch.setattr(kernels, "openblas_core_missed", missed.get)
    monkeypatch.setattr(kernels, "openblas_core_problem", lambda core: None)


@pytest.mark.usefixtures("avx512")
def test_old_kernels_are_shown_with_their_cure() -> None:
    loaded = [copy(OWN, "Prescott"), copy(NUMPY, "Prescott")]
    cure = "; blas.core_type=Haswell asks for newer ones"
    files = "mxnet/libopenblas.so.0, numpy/.libs/libopenblasp-r0.3.7.so"
    assert old_kernels(loaded, [], ["blas.core_type"], asked=False) == [
        f"kernel: Prescott on an AVX-512 CPU ({files}){cure}"
    ]
    assert old_kernels([], ["Prescott"], ["blas.core_type"], asked=False) == [
        f"kernel: Prescott on an AVX-512 CPU (a copy inside another library){cure}"
    ]
    assert old_kernels([copy(OWN, "Haswell")], [], ["blas.core_type"], asked=False) == [
        "kernel: Haswell on an AVX-512 CPU (mxnet/libopenblas.so.0)"
    ]
    # NumPy's copy does not compute for a framework that does not know the setting.
    assert old_kernels(loaded, [], [], asked=False) == [
        "kernel: Prescott on an AVX-512 CPU (mxnet/libopenblas.so.0)"
    ]
    # Nor for one that finds its BLAS by name.
    assert old_kernels([copy(NUMPY, "Prescott")], [], ["blas.core_type", "blas.library"], asked=False) == []
    blis = copy("/usr/lib/libblis.so.4", "generic", "BLIS")
    assert old_kernels([blis], [], ["blas.library"], asked=False) == [
        "kernel: generic on an AVX-512 CPU (/usr/lib/libblis.so.4)"
    ]
    assert old_kernels([copy(OWN, "SkylakeX")], [], ["blas.core_type"], asked=False) == []
    assert old_kernels(loaded, [], ["blas.core_type"], asked=True) == []  # the user has chosen them


ENVIRONMENT = """
[[versions]]
version = "1"
modules = {numpy = "numpy"}
serves = ">=1.0"

[versions.settings."blas.core_type"]
environment = ["OPENBLAS_CORETYPE"]
"""


@pytest.fixture
def on_openblas(tmp_path: Path) -> Path:
    """The NumPy framework of the tests as one that computes with OpenBLAS."""
    folder = tmp_path / "framework"
    folder.mkdir()
    for part in PLANTED.glob("*.py"):
        (folder / part.name).write_text(part.read_text())
    (folder / "environment.toml").write_text(ENVIRONMENT)
    return folder


@pytest.mark.parametrize(
    ("core", "said"), [("Haswel", "no such core type; it has: .*Haswell"), ("", "no such core type")]
)
def test_a_core_type_that_does_not_exist_is_refused(on_openblas: Path, core: str, said: str) -> None:
    case = Case(str(on_openblas), workload("mlp"), settings={"blas.core_type": core})
    with pytest.raises(InputError, match=f"blas.core_type={core}: OpenBLAS has {said}"):
        validate_settings(case, resolve(case))
    with pytest.raises(Unavailable, match=r"blas\.core_type"):
        validate_settings(case, resolve(case), spanned={"blas.core_type"})


@pytest.mark.effect("blas.core_type")
def test_a_core_type_takes_effect_and_is_read_back(tmp_path: Path, on_openblas: Path) -> None:
    """NumPy's wheels bring an OpenBLAS with a choice of kernels."""
    pytest.importorskip("numpy", minversion="2")
    if cpu.openblas_core_problem("Haswell") is not None:
        pytest.skip("this CPU has no AVX2")
    record = run_launch(
        make_plan(tmp_path / "launch", str(on_openblas), settings={"blas.core_type": "Haswell"})
    )
    assert record.outcome == "ok", words(record)
    (setting,) = (one for one in record.settings if one.name == "blas.core_type")
    assert (setting.status, setting.effective) == ("applied", "Haswell"), setting
    assert "announced at load: Haswell" in setting.how_read
    openblas = [one for one in record.libraries if one.vendor == "OpenBLAS"]
    assert [one.kernel for one in openblas] == ["Haswell"]
    assert openblas[0].threads is not None
    assert any(name.startswith("blas.") and "kernel Haswell" in text for name, text in record.facts.items())
    assert record.warnings == []


def test_a_core_type_that_the_library_does_not_take_is_a_mismatch(tmp_path: Path, on_openblas: Path) -> None:
    """PyPI's builds have no kernels of their own for it, and take others."""
    record = run_launch(
        make_plan(tmp_path / "launch", str(on_openblas), settings={"blas.core_type": "Opteron"})
    )
    assert record.outcome == "mismatch", words(record)
    assert (record.reason or "").startswith("blas.core_type asked Opteron, in force ")
