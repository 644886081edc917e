"""How finely a table is known: by ratios, by step times where there are none; without rows that failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timetrial.analysis.precision import median_half_width, too_wide
from timetrial.statistics.intervals import Estimate


def known_to(half_width: float) -> Estimate:
    return Estimate(1.0, 1.0 - half_width, 1.0 + half_width, 4, "geometric mean")


def row(step: float, ratio: float | None = None, outcome: str = "ok") -> Any:
    compared = None if ratio is None else known_to(ratio)
    return SimpleNamespace(outcome=outcome, step_time_ns=known_to(step), ratio=compared, ok=4)


def test_ratios_decide_and_step_times_only_where_nothing_is_compared() -> None:
    assert median_half_width([row(0.3), row(0.3, 0.02), row(0.3, 0.04), row(0.3, 0.01)]) == pytest.approx(
        0.02
    )
    assert median_half_width([row(0.3), row(0.1)]) == pytest.approx(0.2)
    assert median_half_width([]) is None


def test_rows_that_failed_say_nothing() -> None:
    assert median_half_width([row(0.02), row(0.9, outcome="crash")]) == pytest.approx(0.02)
    assert median_half_width([row(0.9, outcome="crash")]) is None


def test_what_is_said() -> None:
    (words,) = too_wide([row(0.3, 0.05)], 0.03)
    assert "the ratios are known to ±5 %" in words
    assert "launches=8" in words
    (words,) = too_wide([row(0.05)], 0.03)
    assert "the step times are known to ±5 %" in words
    assert too_wide([row(0.3, 0.02)], 0.03) == too_wide([row(0.3, 0.05)], None) == []
