from __future__ import annotations

import math

import numpy as np
import pytest

from timetrial.analysis.allocation import Scatter, best_steps, launches_for, scatter
from timetrial.analysis.dispersion import two_levels


def launches(between: float, within: float, steps: int, n: int, seed: int) -> Scatter:
    rng = np.random.default_rng(seed)
    data = np.exp(between * rng.standard_normal((n, 1)) + within * rng.standard_normal((n, steps)))
    errors = np.std(data, axis=1, ddof=1) / math.sqrt(steps)
    return scatter(list(np.mean(data, axis=1)), list(errors), [steps] * n)


@pytest.mark.parametrize(("between", "within"), [(0.02, 0.05), (0.01, 0.2), (0.05, 0.01)])
def test_variances_are_told_apart(between: float, within: float) -> None:
    found = launches(between, within, steps=1_000, n=2_000, seed=1)
    assert found.between == pytest.approx(between**2, rel=0.15)
    assert found.within == pytest.approx(within**2, rel=0.15)


def test_launches_that_do_not_differ_have_no_variance_of_their_own() -> None:
    found = [launches(0.0, 0.1, steps=100, n=10, seed=seed).between for seed in range(40)]
    assert min(found) == 0.0
    assert np.mean(found) < 0.1**2 / 100


def test_no_other_number_of_steps_is_cheaper() -> None:
    found, launch_cost, step_cost, error = Scatter(within=0.05**2, between=0.01**2), 2.0, 0.01, 0.0005
    best = best_steps(found, launch_cost, step_cost)

    def cost(steps: float) -> float:
        return launches_for(found, steps, error) * (launch_cost + steps * step_cost)

    assert best == math.ceil(math.sqrt(200 * 25))
    assert all(cost(best) <= 1.01 * cost(best * factor) for factor in (0.25, 0.5, 0.8, 1.25, 2, 4))


def test_the_limits_of_allocation() -> None:
    assert best_steps(Scatter(0.01, 0.0), 1, 1) == math.inf
    assert best_steps(Scatter(0.0, 0.01), 1, 1) == 1
    assert launches_for(Scatter(0.0, 0.0), 10, 0.01) == 2
    with pytest.raises(ValueError, match="2 or more"):
        scatter([1.0], [0.1], [10])
    with pytest.raises(ValueError, match="as many medians"):
        scatter([1.0, 1.1], [0.1], [10, 10])


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
