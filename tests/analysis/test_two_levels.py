"""Launches of two kinds are seen, and others are not."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.statistics.dispersion import two_levels


@pytest.mark.parametrize("n", [8, 10, 20])
def test_launches_of_two_levels_are_seen_and_others_are_not(n: int) -> None:
    rng = np.random.default_rng(3)
    trials = 400
    one = [two_levels(list(np.exp(0.02 * rng.standard_normal(n)))) for _ in range(trials)]
    assert sum(found is not None for found in one) <= 0.02 * trials
    slow = np.arange(n) < n // 3
    two = [
        two_levels(list(np.exp(0.005 * rng.standard_normal(n) + 0.08 * rng.permutation(slow))))
        for _ in range(trials)
    ]
    seen = [found for found in two if found is not None]
    assert len(seen) >= 0.95 * trials
    assert np.mean(seen) == pytest.approx(0.083, abs=0.004)


def test_few_launches_or_levels_close_together_are_not_called_two() -> None:
    assert two_levels([1.0, 1.0, 2.0, 2.0]) is None
    assert two_levels([1.0, 1.0001] * 5) is None
    assert two_levels([1.0] * 9 + [2.0]) is None  # one launch is an outlier, no level
    assert two_levels([1.0] * 5 + [1.1] * 5) == pytest.approx(0.1)
