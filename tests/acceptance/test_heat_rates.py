"""Ratios from heats: the rounds that are quiet for everyone hold the truth where all rounds do not."""

from __future__ import annotations

import numpy as np
import pytest
from heat_rates import EFFECTS, OF_HEAT, ROUNDS, own_interval
from heat_worlds import WORLDS, heats

TRIALS, HEATS = 80, 8


def held(world: str, of_heat: str) -> float:
    """How often the intervals of ratios hold the truth."""
    rng = np.random.default_rng(14)
    found = []
    for _ in range(TRIALS):
        ratios = [OF_HEAT[of_heat](one) for one in heats(WORLDS[world], EFFECTS, HEATS, ROUNDS, rng)]
        center, half = own_interval(np.array(ratios))
        found.append((np.abs(center - (EFFECTS - EFFECTS[0])) <= half)[1:].mean())
    return float(np.mean(found))


@pytest.mark.parametrize("world", ["quiet", "neighbors 20 %", "neighbors 30 %"])
def test_rounds_that_are_quiet_for_everyone_hold_the_truth(world: str) -> None:
    assert held(world, "median of quiet rounds") >= 0.9


def test_contenders_slow_down_by_different_factors_so_all_rounds_do_not() -> None:
    assert held("neighbors 30 %", "trimmed mean of rounds") <= 0.85
