"""How long OpenBLAS's threads spin, and MKL's branch: told by variables, judged by what is loaded."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_cblas import fake_cblas
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control.blas_variables import (
    BRANCH,
    TIMEOUT,
    VARIABLES,
    copies_of,
    judge_branch,
    judge_timeout,
)
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.library_files import available, find
from timetrial.processes.events import LoadedLibrary
from timetrial.records.model import LaunchRecord

BLAS = LoadedLibrary(path="/x/blas.so", kind="blas")
PTHREAD = BLAS.model_copy(update={"vendor": "OpenBLAS", "version": "OpenBLAS 0.3.21 DYNAMIC_ARCH"})
OPENMP = BLAS.model_copy(update={"vendor": "OpenBLAS", "version": "OpenBLAS 0.3.21 USE_OPENMP"})
SERIAL = BLAS.model_copy(update={"vendor": "OpenBLAS", "version": "OpenBLAS 0.3.21 SINGLE_THREADED"})
BLIS = BLAS.model_copy(update={"vendor": "BLIS"})
SILENT = BLAS.model_copy(update={"vendor": "MKL"})
MKL = SILENT.model_copy(update={"kernel": "SSE4.2", "kernel_getter": "MKL_CBWR_Get()"})

# A product of two threads, and then a wait: what the second thread spends in that, it spends with spinning.
# (It also spins in the product, while its half is done and the first one's is not: long on a busy machine.)
# NumPy's threads are older than the youngest, and spin after the import. The clock of one thread is composed
# as clock_getcpuclockid(3) does it, by the kernel's posix-timers.h.
WAITING = """
import ctypes, os, time

blas = ctypes.CDLL({path!r})
gemm, tell = (next(getattr(blas, p + name) for p in ("", "scipy_") if hasattr(blas, p + name))
              for name in ("cblas_sgemm", "openblas_set_num_threads"))
array = (ctypes.c_float * (96 * 96))()
one = ctypes.c_float(1)

def multiply():
    gemm(101, 111, 111, 96, 96, 96, one, array, 96, array, 96, one, array, 96)

def make():
    tell(2)
    multiply()
    clock = ~max(map(int, os.listdir("/proc/self/task"))) << 3 | 0b110
    told = open({told!r}, "w", buffering=1)

    def step():
        multiply()
        before = time.clock_gettime_ns(clock)
        time.sleep(0.01)
        print(time.clock_gettime_ns(clock) - before, file=told)
        return 1.0
    return step
"""


def judged(record: LaunchRecord, name: str) -> tuple[str | None, str]:
    assert record.outcome == "ok", words(record)
    [one] = [one for one in record.settings if one.name == name]
    return one.effective, one.status


def pthread_openblas() -> Path:
    for name in ("openblas-scipy", "openblas-pthread"):
        if name in available():
            return find(name).resolve()
    pytest.skip("machine: no OpenBLAS with threads of its own")


@pytest.mark.effect(TIMEOUT)
def test_threads_of_openblas_spin_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("machine: one CPU")
    told = tmp_path / "told"
    script = WAITING.replace("{path!r}", repr(str(pthread_openblas()))).replace("{told!r}", repr(str(told)))
    (tmp_path / "mine.py").write_text(script)
    monkeypatch.chdir(tmp_path)

    def spun(word: str) -> float:
        plan = make_plan(tmp_path / word, "mine:make", network="none", settings={TIMEOUT: word})
        assert judged(run_launch(plan), TIMEOUT) == (word, "applied")
        return statistics.median(map(int, told.read_text().split()))

    # Microseconds against most of 10 ms; a machine with ten others leaves a millisecond.
    assert spun("30") > 10 * spun("4")


def test_a_plugin_tells_of_its_own(tmp_path: Path) -> None:
    settings = {"blas.library": str(pthread_openblas()), TIMEOUT: "10"}
    record = run_launch(make_plan(tmp_path / "one", "cblas", settings=settings))
    assert judged(record, TIMEOUT) == ("10", "applied")
    settings["blas.library"] = fake_cblas(tmp_path)
    record = run_launch(make_plan(tmp_path / "other", "cblas", settings=settings))
    assert record.outcome == "mismatch"
    assert f"{TIMEOUT} asked 10, in force no OpenBLAS is loaded" in (record.reason or "")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("environment", "copies", "effective", "status"),
    [
        ({VARIABLES[TIMEOUT]: "4"}, [BLIS, PTHREAD], "4", "applied"),
        ({VARIABLES[TIMEOUT]: "5"}, [PTHREAD], "5", "ignored"),
        ({"PATH": "/bin"}, [PTHREAD], None, "ignored"),
        ({}, [PTHREAD], None, "unverifiable"),
        ({VARIABLES[TIMEOUT]: "4"}, [BLIS], "no OpenBLAS is loaded", "ignored"),
        (
            {VARIABLES[TIMEOUT]: "4"},
            [OPENMP],
            "an OpenBLAS on OpenMP, whose threads wait by openmp.wait_policy",
            "ignored",
        ),
        ({VARIABLES[TIMEOUT]: "4"}, [SERIAL], "an OpenBLAS that was built for one thread", "ignored"),
    ],
)
def test_only_threads_of_its_own_wait_so(
    environment: Mapping[str, str], copies: list[LoadedLibrary], effective: str | None, status: str
) -> None:
    found = judge_timeout("4", environment, copies)
    assert (found.effective, found.status) == (effective, status)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("copies", "effective", "status"),
    [
        ([PTHREAD, MKL], "SSE4_2", "applied"),
        ([MKL.model_copy(update={"kernel": "AVX2"})], "AVX2", "ignored"),
        ([MKL, MKL.model_copy(update={"kernel": "AVX2"})], "AVX2, SSE4_2", "ignored"),
        ([MKL, SILENT], None, "unverifiable"),
        ([PTHREAD], "no MKL is loaded", "ignored"),
    ],
)
def test_every_copy_of_mkl_must_say_so(
    copies: list[LoadedLibrary], effective: str | None, status: str
) -> None:
    found = judge_branch("SSE4_2", copies)
    assert (found.effective, found.status) == (effective, status)


def test_what_a_plugin_tells_counts_where_nothing_else_does() -> None:
    facts = {"blas.version": "Intel(R) oneAPI Math Kernel Library Version 2026.2", "blas.kernel": "AVX2"}
    [one] = copies_of([], facts)
    assert (one.vendor, one.kernel) == ("MKL", "AVX2")
    [silent] = copies_of([], {**facts, "blas.kernel": "the library does not tell"})
    assert silent.kernel is None
    assert copies_of([BLIS], facts) == [BLIS]
    assert copies_of([], {}) == []


PRODUCT = """
import hashlib, torch
torch.set_num_threads(1)
draw = torch.Generator().manual_seed(1)
a, b = torch.rand(64, 300, generator=draw), torch.rand(300, 64, generator=draw)
print("mkl" in torch.__config__.show().lower(), hashlib.sha256((a @ b).numpy().tobytes()).hexdigest())
"""


@pytest.mark.effect(BRANCH)
def test_a_branch_has_bits_of_its_own() -> None:
    """The copy inside PyTorch heeds the variable, though nobody can ask it."""
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    seen = set()
    for word in ("COMPATIBLE", "AVX2"):
        environment = {**os.environ, VARIABLES[BRANCH]: word}
        script = [sys.executable, "-c", PRODUCT]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
        with_mkl, digest = done.stdout.split()
        if with_mkl != "True":
            pytest.skip("machine: a torch without MKL")
        seen.add(digest)
    assert len(seen) == 2


def test_mkl_itself_says_its_branch(tmp_path: Path) -> None:
    if "mkl" not in available():
        pytest.skip("machine: MKL is not installed")
    for word in ("COMPATIBLE", "AVX2"):
        settings = {"blas.library": "mkl", BRANCH: word, "threads": "1"}
        record = run_launch(make_plan(tmp_path / word, "cblas", settings=settings))
        assert judged(record, BRANCH) == (word, "applied")


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        (TIMEOUT, "3", "expected a whole number from 4 to 30"),
        (TIMEOUT, "31", "expected a whole number from 4 to 30"),
        (TIMEOUT, "long", "expected a whole number from 4 to 30"),
        (BRANCH, "AVX3", "expected COMPATIBLE or SSE4_2 or AVX2"),
    ],
)
def test_bad_values(name: str, word: str, said: str) -> None:
    case = Case("cblas", workload("mlp"), settings={name: word})
    with pytest.raises(InputError, match=f"{name}='{word}': {said}"):
        validate_settings(case, resolve(case))
