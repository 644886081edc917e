from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from timetrial.statistics.intervals import (
    paired_ratios,
    positive_location,
    positive_locations,
)
from timetrial.statistics.ranks import quantile_ranks

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
        assert estimate.method == ("trimmed mean" if len(values) >= 6 else "geometric mean")
        assert f"degrees of freedom: {estimate.df}" in estimate.in_words()


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=30), st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    one, scaled = positive_location(values), positive_location([value * factor for value in values])
    assert one is not None
    assert scaled is not None
    assert scaled.estimate == pytest.approx(one.estimate * factor)
    assert scaled.low == pytest.approx((one.low or 0) * factor, rel=1e-6)


def test_nothing_and_nonsense() -> None:
    assert positive_location([]) is None
    assert positive_locations([[], [1.0]])[0] is None
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
        ratios = paired_ratios(dict(enumerate(case.tolist())), dict(enumerate(base.tolist())))
        ratio = positive_location(ratios)
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 1.05 <= ratio.high
        widths.append(ratio.high - ratio.low)
    assert 0.93 <= hits / trials <= 0.99
    assert np.median(widths) < 0.06


def test_only_common_blocks_are_paired() -> None:
    assert paired_ratios({0: 2.0, 1: 4.0, 3: 100.0}, {0: 1.0, 1: 2.0, 2: 1.0}) == [2.0, 2.0]
    assert paired_ratios({0: 1.0}, {1: 1.0}) == []


def test_rows_lend_one_another_what_they_lack() -> None:
    """Five launches of 3 degrees of freedom and rows beside them that scatter alike: 6, and it is said."""
    rng = np.random.default_rng(5)
    rows = np.exp(rng.normal(0, 0.02, (6, 5))).tolist()
    alone, beside = positive_location(rows[0]), positive_locations(rows)[0]
    assert alone is not None
    assert beside is not None
    assert (alone.df, alone.borrowed) == (3, 0)
    assert (beside.df, beside.borrowed) == (6, 3)
    assert beside.estimate == alone.estimate, "only the scatter is borrowed"
    assert "3 of them from the scatter of other rows" in beside.in_words()


def test_a_row_unlike_the_others_stands_alone() -> None:
    rng = np.random.default_rng(1)
    logs = rng.normal(0, 0.02, (6, 5))
    for factor in (20.0, 0.02):
        unlike = logs.copy()
        unlike[2] *= factor
        found = positive_locations(np.exp(unlike).tolist())
        assert found[2] == positive_location(np.exp(unlike[2]).tolist())


def test_two_launches_cannot_show_that_they_scatter_unlike_others() -> None:
    rows = [[1.0, 1.3], [1.0, 1.01, 0.99, 1.0, 1.02], [2.0, 2.02, 1.99, 2.0, 2.01]]
    assert positive_locations(rows)[0] == positive_location(rows[0])
