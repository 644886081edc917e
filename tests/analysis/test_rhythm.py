"""Over how many steps the time of a step repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from timetrial.statistics.rhythm import common_span, span_of


def noise(rng: np.random.Generator, steps: int, kind: str) -> npt.NDArray[np.float64]:
    """Of a machine: white with heavy tails, or one that changes between levels for some 30 steps each."""
    white: Any = np.exp(0.05 * rng.standard_t(3, steps) / 3**0.5)
    if kind == "white":
        return np.asarray(white)
    levels = np.repeat(rng.choice([0.9, 1.0, 1.3, 1.6], steps), rng.integers(10, 50, steps))[:steps]
    return np.asarray(white * levels)


@pytest.mark.parametrize("kind", ["white", "levels"])
@pytest.mark.parametrize("period", [2, 3, 4, 7, 16, 32, 64])
@pytest.mark.parametrize("more", [0.10, 1.0])
def test_a_period_is_found(kind: str, period: int, more: float) -> None:
    """A step in `period` makes the mean so much longer."""
    rng = np.random.default_rng(period)
    found = []
    for _ in range(20):
        times = np.ones(160)
        times[period - 1 :: period] += more * period
        found.append(span_of(times * noise(rng, 160, kind)))
    assert found.count(period) >= 19


@pytest.mark.parametrize("kind", ["white", "levels"])
def test_steps_that_are_alike_have_none(kind: str) -> None:
    """One in fifty may seem to: its turns are longer then, and no less right."""
    rng = np.random.default_rng(1)
    assert np.mean([span_of(noise(rng, 160, kind)) > 1 for _ in range(200)]) <= 0.02


def test_of_equal_times_and_of_few_nothing_is_said() -> None:
    assert span_of(np.full(160, 5.0)) == 1
    assert span_of([1.0, 9.0] * 4) == 1
    assert span_of([1.0, 9.0] * 16) == 2


def test_two_periods_have_the_common_one() -> None:
    times = np.ones(160)
    times[3::4] += 4
    times[4::5] += 6
    assert span_of(times) == 20


def test_bursts_without_a_period_have_their_mean_distance() -> None:
    times = np.ones(160)
    times[[11, 35, 40, 77, 103, 141, 150, 155]] = 9.0
    assert span_of(times) == 20
    assert span_of(np.where(times > 1, 1.5, 1.0)) == 1  # of a machine that is disturbed now and then
    alone = np.ones(160)
    alone[80] = 300.0
    assert span_of(alone) == 1  # a stall, or a late compiler


def test_both_sides_end_with_a_period_where_that_is_not_too_long() -> None:
    assert common_span([4, 6], most=100) == 12
    assert common_span([4, 1, 6], most=11) == 6
    assert common_span([1, 1], most=100) == 1
    assert common_span([64, 6], most=10) == 6
    assert common_span([64, 64], most=2) == 1
