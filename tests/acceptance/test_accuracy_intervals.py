"""How often the interval of an accuracy holds what new seeds and new images would give."""

from __future__ import annotations

import pytest
from image_worlds import ALIKE_WORLDS, IMAGE_WORLDS, accuracy_coverage, alike_rates
from scipy import stats


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("world", IMAGE_WORLDS)
def test_coverage_for_new_seeds_and_new_images(world: str, seeds: int) -> None:
    """93 to 98 %, within the 99.9 % quantile; Student's t over seeds alone gets nowhere near it where they
    agree."""
    trials = 500
    found = accuracy_coverage(IMAGE_WORLDS[world], seeds, trials, seed=seeds)
    fewest, most = stats.binom.ppf(0.001, trials, 0.93), stats.binom.ppf(0.999, trials, 0.98)
    assert fewest <= round(found.held * trials) <= most
    if world == "360 images, seeds agree":
        assert found.over_seeds < 0.1


@pytest.mark.parametrize("world", ALIKE_WORLDS)
def test_trainings_that_part_by_rounding_are_no_difference(world: str) -> None:
    """The sign test over images alone names a row in a third of such tables, or in nearly all."""
    trials = 200
    found = alike_rates(ALIKE_WORLDS[world], 5, 5, trials, seed=3)
    assert found.named * trials <= stats.binom.ppf(0.999, trials, 0.05)
    assert found.found >= 0.95, "one that learned less is found all the same"
    assert found.named_by_images > 0.25
