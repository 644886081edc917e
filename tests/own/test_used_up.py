"""Steps whose input ends before the measuring does, in launches of their own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from launching import MS, SHORT, words

from timetrial.records.model import LaunchRecord
from timetrial.results.results import LaunchFiles, analyzed

Launch = Callable[..., LaunchRecord]
CALLS = 60
PATIENT = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS)
INPUT = f"""
import time
def work(seconds):  # of CPU time, however busy the machine is
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def make():
    left = iter(range({CALLS}))
    losses = iter(range(1_000_000))
"""


@pytest.fixture
def launch(launch: Launch) -> Launch:
    """launch(text) takes four times as many steps as there is input."""
    return functools.partial(launch, measured=PATIENT, max_steps=4 * CALLS)


@pytest.mark.parametrize(
    "step",
    [
        "    return lambda: next(left)\n",
        "    rows = (row for row in left)\n    return lambda: next(rows)\n",
        "    def rows():\n        while True: yield next(left)\n    x = rows()\n    return lambda: next(x)\n",
    ],
)
def test_input_that_ends_is_said_with_its_cure(launch: Launch, step: str) -> None:
    record = launch(INPUT + step)
    assert record.outcome == "crash"
    reason = record.reason or ""
    assert reason.startswith(f"its input was used up at step {CALLS + 1} (mine.py:"), reason
    assert reason.endswith(
        "): give it an iterator that begins again (itertools.cycle, or a new DataLoader iterator), a step is "
        "called as often as measuring needs"
    ), reason


def test_an_empty_queue_is_not_called_so(launch: Launch) -> None:
    record = launch("import queue\ndef make():\n    return queue.Queue().get_nowait\n")
    assert (record.reason or "").startswith("Empty"), record.reason


DOES_NOTHING = f"from call {CALLS + 1} on it does nothing any more, after steps of "


@pytest.mark.parametrize(
    "step",
    [
        "    def step():\n        for _ in left: return work(0.001)\n",  # the loop over what is left is empty
        """
    loss = 0.0
    def step():
        nonlocal loss
        for _ in left:
            work(0.002)
            loss = float(next(losses))
            return loss
        work(0.00004)  # not nothing, but it learns no more
        return loss
""",
    ],
)
def test_a_step_that_does_nothing_any_more_is_wrong(launch: Launch, step: str) -> None:
    record = launch(INPUT + step + "    return step\n")
    assert record.outcome == "wrong", words(record)
    assert (record.reason or "").startswith(DOES_NOTHING), record.reason
    assert "itertools.cycle" in (record.reason or "")


@pytest.mark.parametrize(
    ("step", "call"),
    [
        (
            "        work(0.004 if next(left, None) is not None else 0.0002)\n        return next(losses)\n",
            CALLS + 1,
        ),
        ("        work(0.002)\n        return 0.5\n", None),
        ("        if next(losses) < 8: work(0.02)\n        return 0.5\n", None),  # what compilers do
    ],
)
def test_a_step_that_still_learns_is_not_wrong(
    launch: Launch, tmp_path: Path, step: str, call: int | None
) -> None:
    record = launch(INPUT + "    def step():\n" + step + "    return step\n")
    assert record.outcome == "ok", words(record)
    change = analyzed(LaunchFiles(record, tmp_path / "launch-speed")).change
    assert (change and change.call) == call


def test_memory_behind_each_segment_is_recorded_without_files(launch: Launch) -> None:
    record = launch("def make():\n    kept = []\n    return lambda: kept.append(bytearray(100_000))\n")
    held = [one.rss_bytes - one.mapped_bytes for one in record.segments if one.rss_bytes and one.mapped_bytes]
    assert len(held) == len(record.segments)
    assert held[-1] - held[0] > 50_000 * (record.segments[-1].steps if len(held) > 1 else 0)
