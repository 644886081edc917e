"""How often the interval of an accuracy holds what new seeds and new images would give."""

from __future__ import annotations

import pytest
from image_worlds import IMAGE_WORLDS, accuracy_coverage
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
