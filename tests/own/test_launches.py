"""A step of the user's own in a process of its own: what it may be, and every way in which it ends."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import make_plan, words

from timetrial.analysis.steps import steps_of
from timetrial.launch import run_launch
from timetrial.records import store
from timetrial.records.model import LaunchRecord

Write = Callable[..., Path]

KINDS = {"first", "warmup", "steady", "judged"}  # of segments; the last: what steps leave behind


def losses_of(tmp_path: Path) -> Any:
    folder = tmp_path / "launch-speed"
    record = store.read_launch(folder)
    return steps_of(record, store.read_stamps(folder), store.read_losses(folder)).loss


COUNTING = """
def make():
    count = 0
    def step():
        nonlocal count
        count += 1
        return {result}
    step.samples = 8
    step.read_settings = lambda: {{"flavor": ("plain", "the step itself")}}
    return step
"""


@pytest.mark.parametrize(
    ("result", "is_given"),
    [("count / 2", True), ("type('Loss', (), {'item': lambda self: count / 2})()", True), ("None", False)],
)
def test_every_step_has_a_stamp_and_its_loss(
    launch: Callable[..., LaunchRecord], tmp_path: Path, result: str, is_given: bool
) -> None:
    record = launch(COUNTING.format(result=result))
    assert record.outcome == "ok", words(record)
    assert {"first", "steady"} <= {segment.kind for segment in record.segments} <= KINDS
    losses = losses_of(tmp_path)
    assert len(losses) == sum(segment.steps for segment in record.segments) >= 30
    expected = np.arange(1, len(losses) + 1) / 2 if is_given else np.full(len(losses), np.nan)
    np.testing.assert_array_equal(losses, expected)
    assert record.samples_per_step(None) == 8
    assert record.memory.steady_peak is not None
    [setting] = [one for one in record.settings if one.name != "flush_to_zero"]
    assert (setting.name, setting.effective, setting.asked) == ("flavor", "plain", None)
    source = Path(record.facts["callable.file"])
    assert source.parts[-2:] == ("project", "mine.py")
    assert record.facts["callable.sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert f"numpy {np.__version__}" in record.facts["callable.packages"]


def test_a_proof_runs_one_step_and_proves_nothing(launch: Callable[..., LaunchRecord]) -> None:
    """Which may compile, or fail before anything is timed."""
    broken = launch("def make():\n    return lambda: 1 / 0\n", "proof")
    assert broken.outcome == "crash"
    assert "division by zero (mine.py:2) (run) at step 1" in str(broken.reason)


def test_a_proof_proves_nothing(launch: Callable[..., LaunchRecord]) -> None:
    record = launch("def make():\n    return [0.5].pop\n", "proof")
    assert record.outcome == "ok", words(record)
    assert record.first_call_ns
    assert record.parity is not None
    assert record.parity.status == "unproven"
    assert [(one.kind, one.steps) for one in record.segments] == [("first", 1)]


@pytest.mark.attempt
def test_what_it_prints_is_kept_and_harms_nothing(launch: Callable[..., LaunchRecord]) -> None:
    text = (
        "print('hello')\ndef make():\n    print('made')\n    return lambda: print('{\"event\": \"done\"}')\n"
    )
    record = launch(text)
    assert record.outcome == "ok", words(record)
    assert record.stdout.count('{"event": "done"}') >= 30


def test_modules_of_ours_stand_in_nobodys_way(launch: Callable[..., LaunchRecord], project: Write) -> None:
    for name in ("data", "job", "timed", "score"):
        project(f"{name}.py", f"value = '{name} of mine'\n")
    text = "import data, job, timed, score\nassert data.value == 'data of mine'\n"
    record = launch(text + "def make():\n    return lambda: None\n")
    assert record.outcome == "ok", words(record)


CYCLE = "def make():\n    steps = iter(range(1000))\n    def step():\n        n = next(steps) + 1\n"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        ("def make(): ...\nraise ValueError('at import')", "crash",
         "ValueError: at import (mine.py:2) (load)"),
        ("def make(): ...\nimport no_such_module", "unavailable",
         "No module named 'no_such_module' (mine.py:2) (load)"),
        ("def make(): ...\nfrom os import no_such_name", "crash", "cannot import name 'no_such_name'"),
        ("def make(): ...\nimport mine.part", "crash", "No module named 'mine.part'"),
        ("from os import *", "crash", "mine:make: there is no 'make' in <module 'mine'"),
        ("make = lambda size: None", "crash", "missing 1 required positional argument: 'size'"),
        ("make = str.strip('3')", "crash", "mine:make is a str; expected a function"),
        ("def make():\n    raise KeyError('data')", "crash", "KeyError: 'data' (mine.py:2) (build)"),
        ("def make():\n    pass", "crash", "mine:make returned None; expected a step"),
        ("def make():\n    return 3", "crash", "mine:make returned an int; expected a step"),
        ("def make():\n    return make.__class__", "crash", "returned the class function; expected a step"),
        ("def make():\n    yield 1", "crash", "mine:make returned a generator; expected a step"),
        (CYCLE + "        if n == 7: raise ValueError('no more')\n    return step", "crash",
         "ValueError: no more (mine.py:5) (run) at step 7"),
        (CYCLE + "        return float('nan') if n == 7 else 1.0\n    return step", "nan",
         "the loss is nan at step 7"),
        (CYCLE + "        return float('inf') if n == 1 else 1.0\n    return step", "nan",
         "the loss is inf at step 1"),
        (CYCLE + "        if n == 7: import os; os._exit(3)\n    return step", "crash", "exit code 3 during"),
        (CYCLE + "        if n == 7: import sys; sys.exit(3)\n    return step", "crash", "SystemExit: 3"),
        (CYCLE + "        return 'x' if n == 7 else None\n    return step", "crash",
         "the step returned no number as its loss: must be real number, not str (run) at step 7"),
        ("def make():\n    return lambda: {'loss': 1}", "crash",
         "the step returned a dict; expected its loss (a number, or what has .item()) or nothing"),
        ("def make():\n    return lambda: '1.0'", "crash", "the step returned a str"),
        ("import numpy\ndef make():\n    return lambda: numpy.zeros(3)", "crash",
         "the step returned a ndarray; expected its loss"),
        ("def make():\n    async def step(): ...\n    return step", "crash",
         "the step returned a coroutine: nothing was computed"),
        ("def make():\n    def step():\n        yield 1\n    return step", "crash",
         "the step returned a generator: nothing was computed"),
        ("def make():\n    def step(): ...\n    step.samples = 'many'\n    return step", "crash",
         "samples of the step is 'many'; expected a whole number"),
        ("def make():\n    return lambda batch: None", "crash", "missing 1 required positional argument"),
        ("import os, signal\ndef make():\n    return lambda: os.kill(os.getpid(), signal.SIGSEGV)", "crash",
         "SIGSEGV during a segment (first)"),
        ("def make():\n    def step(): raise MemoryError('too much')\n    return step", "oom", "at step 1"),
    ],
)  # fmt: skip
def test_bad_steps_end_with_words(
    launch: Callable[..., LaunchRecord], text: str, outcome: str, said: str
) -> None:
    record = launch(text)
    assert record.outcome == outcome, words(record)
    assert said in (record.reason or ""), words(record)


@pytest.mark.attempt
def test_a_factory_that_takes_too_long(launch: Callable[..., LaunchRecord]) -> None:
    text = "import time\ndef make():\n    time.sleep(1000)\n"
    record = launch(text, limits={"start_timeout_s": 1.0})
    assert record.outcome == "hang", words(record)
    assert "start_timeout_s=2 gives import and build more time" in (record.reason or "")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("at", "cure"), [(1, "start_timeout_s=4 gives it"), (3, "progress_timeout_s=2 gives it")]
)
def test_a_step_that_takes_too_long(launch: Callable[..., LaunchRecord], at: int, cure: str) -> None:
    text = f"import time\n{CYCLE}        if n == {at}: time.sleep(1000)\n    return step"
    record = launch(text, limits={"start_timeout_s": 2.0, "progress_timeout_s": 1.0})
    assert record.outcome == "hang", words(record)
    assert cure in (record.reason or ""), words(record)


def test_a_slow_step_within_the_limits_is_measured(launch: Callable[..., LaunchRecord]) -> None:
    """Far longer than a segment: each holds one."""
    record = launch("import time\ndef make():\n    return lambda: time.sleep(0.4)\n", max_steps=6)
    assert record.outcome == "ok", words(record)
    assert {segment.steps for segment in record.segments} == {1}
    assert {"first", "steady"} <= {segment.kind for segment in record.segments} <= KINDS


@pytest.mark.attempt
def test_a_batch_size_that_the_step_contradicts(launch: Callable[..., LaunchRecord]) -> None:
    record = launch(COUNTING.format(result="None"), batch_size=16)
    assert record.outcome == "mismatch", words(record)
    assert "batch_size asked 16, the step says samples = 8" in (record.reason or "")
    assert launch("def make():\n    return lambda: None\n", "proof", batch_size=16).outcome == "ok"


WORKING = "import numpy\ndef make():\n    a = numpy.ones((300, 300))\n    return lambda: (a @ a).sum()\n"


def test_threads_are_variables_and_only_if_asked(launch: Callable[..., LaunchRecord]) -> None:
    record = launch(WORKING, threads="1")
    assert record.outcome == "ok", words(record)
    assert record.environment["OMP_NUM_THREADS"] == record.environment["OPENBLAS_NUM_THREADS"] == "1"
    [threads] = [one for one in record.settings if one.asked is not None]
    assert (threads.name, threads.effective, threads.status) == ("threads", "1", "applied")


def test_nothing_is_set_that_nobody_asked(launch: Callable[..., LaunchRecord]) -> None:
    record = launch(WORKING, "proof")
    assert not [name for name in record.environment if name.endswith("_NUM_THREADS")]
    assert [one.name for one in record.settings if one.asked is not None] == []


def test_affinity(launch: Callable[..., LaunchRecord]) -> None:
    core = str(min(os.sched_getaffinity(0)))
    text = (
        f"import os\ndef make():\n    assert os.sched_getaffinity(0) == {{{core}}}\n    return lambda: None\n"
    )
    record = launch(text, affinity=core)
    assert record.outcome == "ok", words(record)


def test_only_training_is_a_step(project: Write, tmp_path: Path) -> None:
    project("mine.py", "def make():\n    return lambda: None\n")
    record = run_launch(make_plan(tmp_path / "launch", "mine:make", task="forward"))
    assert record.outcome == "unavailable", words(record)
    assert "no task 'forward'; it has: train" in (record.reason or "")


ENDING = """
import atexit, pathlib
class Part:
    def __init__(self): self.itself = self  # a cycle, which only a collector would find
parts = [Part() for _ in range(1000)]
def make():
    atexit.register(pathlib.Path({file!r}).write_text, "ended")
    return lambda: 1.0
"""


def test_it_ends_as_python_does_and_what_it_asked_for_at_exit_is_done(
    launch: Callable[..., LaunchRecord], tmp_path: Path
) -> None:
    """Nothing is collected any more, which beside PyTorch takes most of a second."""
    file = tmp_path / "ended.txt"
    record = launch(ENDING.format(file=str(file)))
    assert record.outcome == "ok", words(record)
    assert file.read_text() == "ended"
