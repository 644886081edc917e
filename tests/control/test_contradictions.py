"""What contradicts itself in a contender's process is named with its row."""

from __future__ import annotations

import shutil
from ctypes.util import find_library
from pathlib import Path

import pytest
from launching import make_plan, words

from timetrial.control.contradictions import contradictions
from timetrial.launch import run_launch
from timetrial.processes.events import LoadedLibrary

TWO = """
import ctypes

def make():
    for path in ("libgomp.so.1", {copy!r}):
        ctypes.CDLL(path).omp_get_max_threads()
    return lambda: 1.0
"""


@pytest.mark.attempt
def test_two_openmp_runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel that brings one of its own, beside the system's."""
    if find_library("gomp") is None:
        pytest.skip("machine: no libgomp")
    system = next(Path("/usr/lib").rglob("libgomp.so.1"), None)
    if system is None:
        pytest.skip("machine: libgomp lies elsewhere")
    copy = tmp_path / "libgomp-a34b3233.so.1.0.0"
    shutil.copy(system.resolve(), copy)
    (tmp_path / "mine.py").write_text(TWO.format(copy=str(copy)))
    monkeypatch.chdir(tmp_path)
    record = run_launch(make_plan(tmp_path / "launch", "mine:make", network="none"))
    assert record.outcome == "ok", words(record)
    [warning] = [one for one in record.warnings if "OpenMP runtimes" in one]
    assert warning.startswith("2 OpenMP runtimes are loaded, ")
    assert str(copy) in warning


def test_one_is_none_too_many() -> None:
    mapped = [Path("/usr/lib/libgomp.so.1.0.0"), Path("/usr/lib/libgompertz.so"), Path("/usr/lib/libc.so.6")]
    assert contradictions(mapped, [], frozenset({0}), said=False) == []
    beside = [*mapped, Path("/x/site-packages/paddle/libs/libiomp5.so")]
    [warning] = contradictions(beside, [], frozenset({0}), said=False)
    assert "/usr/lib/libgomp.so.1.0.0 and paddle/libs/libiomp5.so" in warning


@pytest.mark.attempt
def test_a_pool_that_was_sized_before_the_mask() -> None:
    loaded = [
        LoadedLibrary(
            path="/x/libopenblas.so", kind="blas", threads=4, threads_getter="openblas_get_num_threads()"
        ),
        LoadedLibrary(path="/x/libblas.so", kind="blas"),
    ]
    [warning] = contradictions([], loaded, frozenset({0, 1}), said=False)
    assert (
        "/x/libopenblas.so has 4 threads (openblas_get_num_threads()), and the contender may use 2" in warning
    )
    assert contradictions([], loaded, frozenset(range(4)), said=False) == []
    assert contradictions([], loaded, frozenset({0, 1}), said=True) == []  # judged with `threads`
