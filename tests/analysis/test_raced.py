"""The table of metrics: one entry, and one place that says how it comes from launches."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import timetrial
from timetrial.analysis import raced
from timetrial.analysis.raced import Ride
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
