from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from timetrial.analysis.intervals import (
    bounded_mean,
    paired_ratio,
    positive_location,
)
from timetrial.analysis.ranks import quantile_ranks

POSITIVE = st.floats(1e-6, 1e12)


def covered(rank: int, n: int) -> float:
    """Probability that the rank-th smallest and rank-th largest of n enclose the median."""
    return float(1 - 2 * stats.binom.cdf(rank - 1, n, 0.5))


@pytest.mark.parametrize(("n", "rank"), [(5, None), (6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (25, 8)])
def test_ranks_of_published_tables(n: int, rank: int | None) -> None:
    assert quantile_ranks(n)[0] == rank


@given(st.integers(1, 400), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_rank_is_the_largest_that_covers(n: int, confidence: float) -> None:
    rank, from_above = quantile_ranks(n, 0.5, confidence)
    assert from_above == (None if rank is None else n + 1 - rank)
    if rank is not None:
        assert covered(rank, n) >= confidence
    assert covered((rank or 0) + 1, n) < confidence


@given(st.lists(POSITIVE, min_size=1, max_size=40))
def test_the_interval_holds_the_estimate(values: list[float]) -> None:
    estimate = positive_location(values)
    assert estimate is not None
    assert estimate.n == len(values)
    if len(values) == 1:
        assert estimate.low is estimate.high is None
        assert "no interval" in estimate.in_words()
    else:
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= estimate.estimate * (1 + 1e-9)
        assert estimate.estimate <= estimate.high * (1 + 1e-9)
        assert estimate.method == ("order statistics" if len(values) >= 6 else "t on logarithms")


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=30), st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    one, scaled = positive_location(values), positive_location([value * factor for value in values])
    assert one is not None
    assert scaled is not None
    assert scaled.estimate == pytest.approx(one.estimate * factor)
    assert scaled.low == pytest.approx((one.low or 0) * factor, rel=1e-6)


def test_nothing_and_nonsense() -> None:
    assert positive_location([]) is None
    assert bounded_mean([]) is None
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="positive, finite"):
            positive_location([1.0, value])


@pytest.mark.parametrize("n", [3, 5, 6, 10, 20])
def test_coverage_of_the_true_step_time(n: int) -> None:
    """95 % of the intervals hold the truth when launches scatter by lognormal factors."""
    rng = np.random.default_rng(n)
    trials, hits = 2000, 0
    for sample in np.exp(rng.normal(math.log(5e6), 0.02, (trials, n))):
        estimate = positive_location(sample.tolist())
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= 5e6 <= estimate.high
    assert hits / trials >= 0.935  # three standard errors below 0.95
    assert hits / trials <= 0.99


@pytest.mark.parametrize("n", [5, 10])
def test_coverage_of_the_ratio_under_drift(n: int) -> None:
    """Blocks cancel a drift that is far larger than the difference."""
    rng = np.random.default_rng(n)
    trials, hits, widths = 1000, 0, []
    for _ in range(trials):
        drift = np.cumsum(rng.normal(0, 0.1, n))
        base = np.exp(drift + rng.normal(0, 0.01, n))
        case = 1.05 * np.exp(drift + rng.normal(0, 0.01, n))
        ratio = paired_ratio(dict(enumerate(case.tolist())), dict(enumerate(base.tolist())))
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 1.05 <= ratio.high
        widths.append(ratio.high - ratio.low)
    assert 0.93 <= hits / trials <= 0.99
    assert np.median(widths) < 0.06


def test_only_common_blocks_are_paired() -> None:
    ratio = paired_ratio({0: 2.0, 1: 4.0, 3: 100.0}, {0: 1.0, 1: 2.0, 2: 1.0})
    assert ratio is not None
    assert (ratio.estimate, ratio.n) == (pytest.approx(2.0), 2)
    assert paired_ratio({0: 1.0}, {1: 1.0}) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10))
def test_accuracy_stays_a_fraction(values: list[float]) -> None:
    estimate = bounded_mean(values)
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert 0 <= estimate.low <= estimate.high <= 1
