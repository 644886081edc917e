"""The settings openmp.*: read back from what every runtime of the process prints, and from the kernel."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import openmp
from timetrial.control.openmp import displayed
from timetrial.environments import environments_folder
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.records.model import LaunchRecord
from timetrial.records.store import read_losses

GNU = """OPENMP DISPLAY ENVIRONMENT BEGIN
  _OPENMP = '201511'
  OMP_DYNAMIC = 'FALSE'
  OMP_PLACES = '{0},{1}'
  OMP_WAIT_POLICY = 'PASSIVE'
  GOMP_SPINCOUNT = '18446744073709551615'
OPENMP DISPLAY ENVIRONMENT END
"""
LLVM = "   [host] OMP_WAIT_POLICY='ACTIVE'\n   [host] KMP_BLOCKTIME='200ms'\n"

# A region of two threads, and then a wait: what the second thread spends meanwhile, it spends with spinning.
WAITING = """
import ctypes, time

gomp, libc = ctypes.CDLL("{runtime}"), ctypes.CDLL(None)

def make():
    def step():
        gomp.GOMP_parallel(libc.free, None, 2, 0)
        time.sleep(0.01)
        return 1.0
    return step
"""


def launched(folder: Path, backend: str = "onednn", **settings: str) -> LaunchRecord:
    asked = {name.replace("openmp_", "openmp."): value for name, value in settings.items()}
    return run_launch(make_plan(folder / "launch", backend, settings=asked))


@pytest.mark.parametrize("policy", ["passive", "active"])
def test_the_runtime_says_how_it_waits(tmp_path: Path, policy: str) -> None:
    record = launched(tmp_path, openmp_wait_policy=policy, openmp_dynamic="false")
    assert record.outcome == "ok", words(record)
    found = {one.name: (one.effective, one.status) for one in record.settings}
    assert found["openmp.wait_policy"] == (policy, "applied")
    assert found["openmp.dynamic"] == ("false", "applied")


@pytest.mark.effect("openmp.proc_bind")
@pytest.mark.effect("openmp.places")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="machine: one CPU")
def test_threads_stay_at_their_places(tmp_path: Path) -> None:
    settings = {"threads": "2", "openmp_proc_bind": "close", "openmp_places": "threads"}
    record = launched(tmp_path, **settings)
    assert record.outcome == "ok", words(record)
    found = {one.name: (one.effective, one.status) for one in record.settings}
    assert found["openmp.proc_bind"] == ("close", "applied")
    assert found["openmp.places"][1] == "applied"
    # The kernel agrees: there are threads at two places.
    assert len({one.allowed_cpus for one in record.threads if one.allowed_cpus.isdecimal()}) >= 2


# Whether OpenMP may use fewer threads, by its own answer in the process.
DYNAMIC = """
import ctypes

gomp = ctypes.CDLL("libgomp.so.1")

def make():
    return lambda: float(gomp.omp_get_dynamic())
"""


def stepped(folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, name: str, word: str) -> LaunchRecord:
    """A launch of a step in which the setting is applied, by its judge."""
    folder.mkdir()
    (folder / "mine.py").write_text(step)
    monkeypatch.chdir(folder)
    # LLVM's threads that spin let others go first, which leaves them nothing on a busy machine.
    plan = make_plan(folder / "launch", "mine:make", network="none", settings={name: word})
    record = run_launch(replace(plan, environment={"KMP_USE_YIELD": "0"}))
    assert record.outcome == "ok", words(record)
    [found] = [one for one in record.settings if one.name == name]
    assert found.status == "applied"
    return record


def waited(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, word: str, runtime: str = "libgomp.so.1"
) -> float:
    """The CPU time per step of the region's second thread, which has nothing to do, in nanoseconds."""
    record = stepped(folder, monkeypatch, WAITING.format(runtime=runtime), name, word)
    # Not NumPy's, which are older, and spin after the import.
    youngest = max(record.threads, key=lambda one: one.tid)
    return youngest.cpu_ns / sum(one.steps for one in record.segments)


@pytest.mark.effect("openmp.spin_count")
@pytest.mark.effect("openmp.wait_policy")
@pytest.mark.parametrize(
    ("name", "short", "long"),
    [(openmp.SPIN_COUNT, "0", openmp.FOREVER), ("openmp.wait_policy", "passive", "active")],
)
def test_threads_that_wait_spin_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, short: str, long: str
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("machine: one CPU")
    asleep = waited(tmp_path / "short", monkeypatch, name, short)
    spinning = waited(tmp_path / "long", monkeypatch, name, long)
    # Microseconds against most of 10 ms; a machine with ten others leaves a millisecond.
    assert spinning > 10 * asleep


@pytest.mark.effect("openmp.dynamic")
@pytest.mark.parametrize(("word", "answer"), [("true", 1.0), ("false", 0.0)])
def test_openmp_may_use_fewer_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, answer: float
) -> None:
    stepped(tmp_path / "one", monkeypatch, DYNAMIC, "openmp.dynamic", word)
    assert set(read_losses(tmp_path / "one" / "launch")) == {answer}


# LLVM's and Intel's runtimes have GNU's functions as well.
@pytest.mark.effect("openmp.blocktime")
def test_threads_of_llvms_runtime_spin_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = llvm_openmp()
    if path is None:
        pytest.skip("machine: no OpenMP runtime of LLVM's or Intel's")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("machine: one CPU")
    asleep = waited(tmp_path / "short", monkeypatch, openmp.BLOCKTIME, "0", str(path))
    spinning = waited(tmp_path / "long", monkeypatch, openmp.BLOCKTIME, openmp.FOREVER, str(path))
    assert spinning > 10 * asleep


def llvm_openmp() -> Path | None:
    """In the running interpreter's environment, or one of a framework's."""
    places = [Path(sys.prefix) / "lib", environments_folder()]
    patterns = ("libiomp5.so", "libomp.so*", "*/lib/python*/site-packages/paddle/libs/libiomp5.so")
    return next((one for place in places for pattern in patterns for one in place.glob(pattern)), None)


@pytest.mark.attempt
def test_without_openmp_nothing_was_applied(tmp_path: Path) -> None:
    record = launched(tmp_path, "eigen", openmp_wait_policy="passive")
    assert record.outcome == "mismatch"
    assert record.reason is not None
    assert "openmp.wait_policy asked passive, in force no OpenMP runtime that says so" in record.reason


def test_what_runtimes_print() -> None:
    assert displayed(GNU + LLVM)["OMP_WAIT_POLICY"] == ["passive", "active"]
    assert displayed("Core: Haswell\n") == {}
    name = "openmp.wait_policy"
    assert openmp.judge(name, "passive", displayed(GNU)).status == "applied"
    assert openmp.judge("openmp.places", "cores", displayed(GNU)).effective == "{0},{1}"


@pytest.mark.parametrize(
    ("name", "asked", "said", "effective", "status"),
    [
        (openmp.SPIN_COUNT, "infinite", GNU, "18446744073709551615", "applied"),
        (openmp.SPIN_COUNT, "1000", GNU, "18446744073709551615", "ignored"),
        (openmp.SPIN_COUNT, "1000", LLVM, "no GNU's OpenMP (libgomp) is loaded", "ignored"),
        (openmp.BLOCKTIME, "200", LLVM, "200ms", "applied"),
        (openmp.BLOCKTIME, "0", LLVM, "200ms", "ignored"),
        (openmp.BLOCKTIME, "0", "", "no OpenMP runtime that says so", "ignored"),
    ],
)
def test_how_long_they_spin_is_each_runtimes_own_word(
    name: str, asked: str, said: str, effective: str, status: str
) -> None:
    judged = openmp.judge(name, asked, displayed(said))
    assert (judged.effective, judged.status) == (effective, status)


@pytest.mark.attempt
def test_a_second_runtime_with_another_opinion_is_seen() -> None:
    judged = openmp.judge("openmp.wait_policy", "passive", displayed(GNU + LLVM))
    assert (judged.status, judged.effective) == ("ignored", "passive, active")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        (openmp.SPIN_COUNT, "10k"),
        (openmp.SPIN_COUNT, "-1"),
        (openmp.BLOCKTIME, "3000000000"),
        (openmp.BLOCKTIME, ""),
    ],
)
def test_bad_counts(name: str, word: str) -> None:
    case = Case("onednn", workload("mlp"), settings={name: word})
    with pytest.raises(
        InputError, match=f"{name}='{word}': expected a whole number from 0 to .* or infinite"
    ):
        validate_settings(case, resolve(case))


def test_bad_values() -> None:
    case = Case("onednn", workload("mlp"), settings={"openmp.wait_policy": "lazy"})
    with pytest.raises(InputError, match=r"openmp\.wait_policy='lazy': expected passive or active"):
        validate_settings(case, resolve(case))
