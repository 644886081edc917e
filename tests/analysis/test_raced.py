"""The table of metrics: one entry, and one place that says how it comes from launches."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timetrial
from timetrial.analysis import raced
from timetrial.analysis.raced import Ride, scatter_of
from timetrial.analysis.steps import Steps
from timetrial.records.metric import METRICS, RACED, raced_words


def ride(held: int | None = None, samples: int | None = None) -> Ride:
    def never() -> Any:
        raise AssertionError("its steps were read")

    record: Any = SimpleNamespace(
        memory=SimpleNamespace(held=held), samples_per_step=lambda batch_size: batch_size or samples
    )
    return Ride(record, never, None)


def test_every_raced_metric_is_in_both_tables() -> None:
    assert set(raced.RACED) == set(RACED) <= set(METRICS)
    assert raced_words() == "step_time, samples_per_s or peak_memory"


def test_no_other_file_has_a_list_of_metrics() -> None:
    """Somebody who adds a metric has nothing else to find."""
    package = Path(timetrial.__file__).parent
    quoted = [re.compile(rf'"{name}"') for name in RACED]
    lists = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if all(name.search(path.read_text(encoding="utf-8")) for name in quoted)
    }
    # Which numbers of a row an export has is its format's choice.
    exports = {"exports/lines.py", "exports/google_benchmark.py"}
    assert lists == {"records/metric.py", "analysis/raced.py", *exports}


def test_memory_is_compared_without_reading_steps() -> None:
    one = raced.RACED["peak_memory"]
    assert one.value(ride(held=7)) == 7
    assert one.log_ratios(ride(held=100), ride(held=200)) == {"mean": pytest.approx(math.log(2))}
    with pytest.raises(ValueError, match="how much memory"):
        one.log_ratios(ride(held=100), ride())


def test_what_cannot_be_compared_says_why() -> None:
    with pytest.raises(ValueError, match="32 and 64 samples: their times cannot be compared"):
        raced.RACED["step_time"].log_ratios(ride(samples=32), ride(samples=64))
    with pytest.raises(ValueError, match="how many samples a step has is not known"):
        raced.RACED["samples_per_s"].log_ratios(ride(samples=32), ride())


def ridden(times_ns: list[int], disturbed: set[int]) -> Ride:
    """A launch with turns of two steps each; the first of a turn does not count."""
    record: Any = SimpleNamespace(
        turns=[SimpleNamespace(disturbed=place in disturbed) for place in range(len(times_ns))],
        samples_per_step=lambda _: None,
    )
    segment = np.repeat(np.arange(len(times_ns)), 2)
    nothing = np.zeros(len(segment), np.bool_)
    steps = Steps(np.repeat(times_ns, 2), np.arange(len(segment)), np.zeros(len(segment)), segment,
                  nothing, nothing, nothing, ("turn",) * len(times_ns))  # fmt: skip
    return Ride(record, lambda: steps, None)


def ratio(base: Ride, challenger: Ride) -> float:
    return math.exp(raced.RACED["step_time"].log_ratios(base, challenger)["mean"])


def test_rounds_in_which_others_disturbed_a_side_count_for_none() -> None:
    base, slowed = ridden([100] * 8, {2}), ridden([100] * 5 + [900] + [100] * 2, {5})
    assert ratio(base, slowed) == pytest.approx(1.0)
    assert raced.RACED["step_time"].value(slowed) == pytest.approx(100)
    assert scatter_of(base, slowed) == pytest.approx(0.0)


def test_where_others_disturbed_more_than_a_quarter_all_rounds_count() -> None:
    slowed = ridden([100] * 5 + [900] * 3, {5, 6, 7})
    assert ratio(ridden([100] * 8, set()), slowed) == pytest.approx(4.0)


def test_sides_that_rode_by_themselves_leave_out_turns_of_their_own() -> None:
    assert ratio(ridden([100, 500, *[100] * 6], {1}), ridden([200] * 4, set())) == pytest.approx(2.0)
