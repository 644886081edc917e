"""A step of the user's own may say how it is led back to its start; then it is, as every contender."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import pytest
from launching import MS, SHORT

from timetrial.records.model import LaunchRecord

STEP = """
def make():
    state = [0, 0]
    def step():
        state[0] += 1
        return 1.0 / state[0]
    def reset():
        {reset}
    step.reset = {name}
    return step
"""
MEASURE = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS, max_steps=250)


@pytest.fixture
def launch(launch: Callable[..., LaunchRecord]) -> Callable[[str], LaunchRecord]:
    """As everywhere here, but for longer."""
    return functools.partial(launch, measured=MEASURE, max_steps=MEASURE.max_steps)


def test_a_step_with_a_reset_repeats(launch: Callable[[str], LaunchRecord]) -> None:
    record = launch(STEP.format(reset="state[0] = 0", name="reset"))
    assert record.outcome == "ok", record.reason
    assert record.passes is not None
    assert (record.passes.steps, record.passes.resets) == (100, 2)
    assert not record.warnings


def test_a_reset_that_does_not_lead_back_is_said(launch: Callable[[str], LaunchRecord]) -> None:
    record = launch(STEP.format(reset="pass", name="reset"))
    assert record.outcome == "ok", record.reason
    [warning] = record.warnings
    assert warning.startswith("after a reset the loss of step 1 is 0.0099009901, in the first pass it was 1")


def test_a_step_without_a_reset_is_marked(launch: Callable[[str], LaunchRecord]) -> None:
    record = launch(STEP.format(reset="pass", name="None"))
    assert record.passes is not None
    assert (record.passes.steps, record.passes.resets) == (None, 0)


@pytest.mark.parametrize(("name", "said"), [("7", "an int"), ("dict", "the class dict")])
def test_a_reset_that_is_none(launch: Callable[[str], LaunchRecord], name: str, said: str) -> None:
    record = launch(STEP.format(reset="pass", name=name))
    assert record.outcome == "crash"
    assert f"reset of the step is {said}; expected a function that leads back to its first step" in str(
        record.reason
    )


def test_a_reset_that_raises(launch: Callable[[str], LaunchRecord]) -> None:
    record = launch(STEP.format(reset="raise RuntimeError('no way back')", name="reset"))
    assert record.outcome == "crash"
    assert "no way back (mine.py:8) (run) at step 101" in str(record.reason)
