"""Ratios from heats: how often their intervals hold the truth, and what the letters say."""

from __future__ import annotations

import numpy as np
import pytest
from heat_rates import OF_HEAT, apart, experiments, inside, intervals, level_ratio, until_narrow
from heat_worlds import WORLDS

TRIALS, HEATS = 60, 8


@pytest.mark.parametrize("world", ["quiet", "neighbors 20 %", "neighbors 30 %"])
def test_rounds_that_are_quiet_for_others_hold_the_truth(world: str) -> None:
    assert held(world, "totals of rounds quiet for others") >= 0.9


def test_contenders_slow_down_by_different_factors_so_all_rounds_do_not() -> None:
    assert held("neighbors 30 %", "trimmed mean of rounds") <= 0.85


def held(world: str, of_heat: str) -> float:
    """How often the intervals of ratios hold the truth."""
    return float(
        np.mean([inside(intervals(one)) for one in experiments(world, OF_HEAT[of_heat], HEATS, TRIALS)])
    )


@pytest.mark.full
@pytest.mark.parametrize("world", WORLDS)
def test_heats_until_the_table_is_narrow(world: str) -> None:
    """Intervals hold the truth as they say, equal rows share a letter, rows 3 % apart mostly do not."""
    trials = 300
    values = experiments(world, level_ratio, HEATS, trials)
    chosen = [one[: until_narrow(one)] for one in values]
    assert 0.92 <= np.mean([inside(intervals(one)) for one in chosen]) <= 0.985
    pairs = [apart(one) for one in chosen]
    assert np.mean([(0, 1) in one for one in pairs]) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / trials)
    assert np.mean([(0, 3) in one for one in pairs]) == 1.0  # twice as slow
