"""`tt.settings()`: in force in the block and gone behind it; what does not heed it is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from interpreter import fake, installed, run

import timetrial as tt

CPUS = len(os.sched_getaffinity(0))
TWO_CPUS = pytest.mark.skipif(CPUS < 2, reason="machine: one CPU")

STATES = """
def state():
    return {os.path.basename(one.path) + ":" + one.kind: one.threads for one in tt.libraries()}
"""


@TWO_CPUS
def test_every_library_and_back() -> None:
    script = (
        STATES
        + """
import numpy, torch
for path in sys.argv[1:]: load(path)
before, mine = state(), torch.get_num_threads()
with tt.settings(threads=1) as applied:
    inside, told = state(), torch.get_num_threads()
print(json.dumps([before, inside, state(), told, torch.get_num_threads() == mine, repr(applied)]))
"""
    )
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    paths = [installed(name) for name in ("openblas-openmp", "openblas-pthread", "blis-pthread", "atlas")]
    before, inside, behind, told, back, text = run(script, *paths)
    assert before == behind
    assert {one for one in inside.values() if one is not None} == {1}
    assert max(one for one in before.values() if one is not None) == CPUS
    assert (told, back) == (1, True)
    assert "unsupported" in text  # ATLAS


@TWO_CPUS
def test_threadpoolctl_agrees() -> None:
    pytest.importorskip("threadpoolctl", reason="machine: no threadpoolctl")
    script = """
from threadpoolctl import threadpool_info
import numpy
for path in sys.argv[1:]: load(path)
with tt.settings(threads=1):
    theirs = {one["filepath"]: one["num_threads"] for one in threadpool_info()}
    ours = {one.path: one.threads for one in tt.libraries() if one.threads is not None}
print(json.dumps([{os.path.realpath(path): n for path, n in each.items()} for each in (theirs, ours)]))
"""
    theirs, ours = run(script, *(installed(name) for name in ("openblas-pthread", "blis-pthread")))
    assert len(theirs) >= 3
    assert theirs.items() <= ours.items()


def test_exceptions_nesting_and_functions() -> None:
    script = (
        STATES
        + """
load(sys.argv[1])
told = lambda: tt.libraries()[0].threads
@tt.settings(threads=1)
def inside(): return told()
before, seen = told(), []
try:
    with tt.settings(threads=1):
        with tt.settings(threads=2, oversubscribe=True): seen.append(told())
        seen.append(told())
        raise KeyError
except KeyError: pass
again = tt.settings(threads=1)
with again:
    with again: seen.append(told())
    seen.append(told())
print(json.dumps([before, seen, inside(), told()]))
"""
    )
    before, seen, decorated, behind = run(script, installed("openblas-pthread"))
    assert (before, behind) == (CPUS, CPUS)
    assert seen == [2, 1, 1, 1]
    assert decorated == 1


def test_threads_of_the_process_have_openmp_numbers_of_their_own(tmp_path: Path) -> None:
    script = """
load("libgomp.so.1")
omp = ctypes.CDLL("libgomp.so.1")
entered, left, seen = threading.Event(), threading.Event(), []
def other():
    entered.wait(); seen.append(omp.omp_get_max_threads()); left.set()
thread = threading.Thread(target=other); thread.start()
omp.omp_set_num_threads(2)
with tt.settings(threads=1):
    entered.set(); left.wait()
thread.join()
held = tt.settings(threads=1)
held.__enter__()
def leave():
    try: held.__exit__(None, None, None)
    except tt.InputError as error: seen.append(str(error))
thread = threading.Thread(target=leave); thread.start(); thread.join()
print(json.dumps(seen))
"""
    elsewhere, words = run(script)
    assert elsewhere == CPUS  # the number of the calling thread alone was changed
    assert "entered in one thread and left in another" in words


@TWO_CPUS
def test_affinity_and_subnormal_numbers() -> None:
    script = """
import numpy
tiny = numpy.full(4, 1e-39, numpy.float32)
sleeper = threading.Thread(target=threading.Event().wait, daemon=True); sleeper.start()
def masks(): return sorted(len(os.sched_getaffinity(int(task))) for task in os.listdir("/proc/self/task"))
def flushed(): return bool((tiny * numpy.float32(0.5) == 0).all())
before = masks(), flushed()
with tt.settings(affinity=sys.argv[1], flush_to_zero=True) as applied:
    inside = masks(), flushed()
print(json.dumps([before, inside, (masks(), flushed()), [one.status for one in applied.readings]]))
sys.stdout.flush(); os._exit(0)
"""
    before, inside, behind, statuses = run(script, min(os.sched_getaffinity(0)))
    assert before == behind
    assert not before[1]
    assert inside[1]
    assert set(inside[0]) == {1}
    assert set(before[0]) == {CPUS}
    assert statuses == ["applied", "applied"]


WARNED = """
load(sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with tt.settings(threads=int(sys.argv[2]), oversubscribe=True) as applied: pass
name = os.path.basename(os.path.realpath(sys.argv[1]))
statuses = [one.status for one in applied.readings if name in one.library]
print(json.dumps([[str(one.message) for one in caught], statuses]))
"""


@pytest.mark.attempt
@pytest.mark.parametrize("name", ["blis-serial", "openblas-serial"])
def test_a_serial_build_is_not_believed(name: str) -> None:
    path = installed(name)
    [words], statuses = run(WARNED, path, 2)
    assert words.startswith("threads=2 did not reach ")
    assert path.resolve().name in words
    assert "built for one thread" in words
    assert statuses == ["ignored"]
    assert run(WARNED, path, 1) == [[], ["applied"]]


@pytest.mark.attempt
def test_a_library_that_does_not_listen(tmp_path: Path) -> None:
    [words], statuses = run(WARNED, fake(tmp_path, "libdeaf.so", "PARALLEL=1", "DEAF"), 1)
    assert words == ("threads=1 did not reach OpenBLAS (libdeaf.so): openblas_get_num_threads() answers 2")
    assert statuses == ["ignored"]
    assert run(WARNED, fake(tmp_path, "libfine.so", "PARALLEL=1"), 1) == [[], ["applied"]]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "was asked for nothing: expected threads, affinity, flush_to_zero"),
        ({"threads": 0}, "threads=0: expected a whole number from 1 to"),
        ({"threads": True}, "threads=True: expected a whole number"),
        ({"threads": "1"}, "threads='1': expected a whole number"),
        ({"threads": 4096}, "oversubscribe=True allows it"),
        ({"affinity": "4095"}, "this process may not use core 4095"),
        ({"affinity": "x"}, "expected cores as in '0', '0-1' or '0\\+2'"),
        ({"flush_to_zero": "on"}, "flush_to_zero='on': expected True or False"),
        ({"thread": 1}, "has no 'thread'. Did you mean 'threads'?"),
        ({"malloc.top_pad": 1}, "malloc.top_pad acts only when a process starts"),
    ],
)
def test_bad_input(asked: dict[str, object], words: str) -> None:
    with pytest.raises(tt.InputError, match=words.replace("?", "\\?")):
        tt.settings(**asked)  # type: ignore[arg-type]


def test_one_core_and_four_threads_by_name() -> None:
    core = str(min(os.sched_getaffinity(0)))
    with pytest.raises(tt.InputError, match="there is 1 processor for them"):
        tt.settings(threads=4, affinity=core)
    tt.settings(threads=4, affinity=core, oversubscribe=True)


def test_warnings_that_are_errors_leave_nothing_behind(tmp_path: Path) -> None:
    script = """
load(sys.argv[1])
warnings.simplefilter("error")
before = [one.threads for one in tt.libraries()]
try:
    with tt.settings(threads=1): seen = "entered"
except tt.SettingsWarning as warning: seen = str(warning)
print(json.dumps([before, [one.threads for one in tt.libraries()], seen]))
"""
    before, behind, seen = run(script, fake(tmp_path, "libdeaf.so", "PARALLEL=1", "DEAF"))
    assert before == behind
    assert seen.startswith("threads=1 did not reach OpenBLAS (libdeaf.so)")


def test_a_function_that_several_threads_call() -> None:
    script = """
load(sys.argv[1])
both, told = threading.Barrier(2), lambda: [one.threads for one in tt.libraries()]
@tt.settings(threads=1)
def inside():
    both.wait(); told(); both.wait()
before = told()
threads = [threading.Thread(target=inside) for _ in range(2)]
for one in threads: one.start()
for one in threads: one.join()
print(json.dumps([before, told()]))
"""
    before, behind = run(script, installed("openblas-pthread"))
    assert before == behind
    assert CPUS in before
