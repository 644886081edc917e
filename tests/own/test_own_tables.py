"""Steps of one's own in a table of `run`: bursts count, helpers and work left behind are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from left_running import FILL, POSTS_ONE_AHEAD, STEP

BURSTS = """
import time

def always():
    return lambda: time.sleep(0.002)

def every_fourth():
    calls = 0
    def step():
        nonlocal calls
        calls += 1
        time.sleep(0.010 if calls % 4 == 0 else 0.002)
    return step
"""
LOADER = (
    FILL
    + """
def alone():
    return lambda: time.sleep(0.02)

def loader():
    batches = queue.Queue(500)
    threading.Thread(target=fill, args=(batches,), daemon=True).start()
    return lambda: batches.get() and time.sleep(0.002)
"""
)
Table = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def table(project: Callable[[str, str], None], results_folder: Path) -> Table:
    """The cases of a run of these functions, and all that it warns of."""

    def table(code: str, *names: str) -> tuple[list[dict[str, Any]], str]:
        project("mine.py", code)
        callables = ",".join(f"mine:{name}" for name in names)
        given = [f"callable={callables}", "launches=2", "--json", "--results", str(results_folder)]
        done = subprocess.run(
            [sys.executable, "-m", "timetrial.cli.main", "run", *given],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        cases = json.loads(done.stdout)["cases"]
        return cases, " ".join(words for case in cases for words in case["warnings"])

    return table


@pytest.mark.alone
def test_what_a_step_does_now_and_then_counts(table: Table) -> None:
    (always, fourth), said = table(BURSTS, "always", "every_fourth")
    assert fourth["ratio"]["estimate"] == pytest.approx(2.0, rel=0.25)
    medians = [one["median_step_ns"]["estimate"] for one in (fourth, always)]
    assert medians[0] / medians[1] == pytest.approx(1.0, rel=0.25)
    assert "above its median step" in said


@pytest.mark.alone
def test_who_has_helpers_is_measured_by_itself(table: Table) -> None:
    (alone, loader), said = table(LOADER, "alone", "loader")
    assert loader["ratio"]["estimate"] == pytest.approx(1.0, rel=0.25), "it waits for its batches"
    assert "it has helpers that go on while it is stopped (a thread of it" in said
    assert len(alone["records"]) == len(loader["records"]), "nobody rode twice"


def test_work_left_behind_by_a_single_row_is_named(table: Table) -> None:
    [_], said = table(STEP.replace("AFTER", POSTS_ONE_AHEAD), "make")
    assert "work goes on behind the step" in said
