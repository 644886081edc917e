"""Acceptance test 9: the numbers themselves, where arithmetic can go wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetrial.statistics.dispersion import coefficient_of_variation, outliers, robust_variation
from timetrial.statistics.quantiles import quantile
from timetrial.statistics.steady import find_steady
from timetrial.statistics.trimmed import trimmed_location, trimmed_mean
from timetrial.statistics.verdict import Rule, decide


def test_09_small_scatter_of_large_numbers_is_not_cancelled() -> None:
    """9: 1e9 and 1e9 + 0.001 in turns: the standard deviation is 0.0005, not 0 and not noise."""
    values = 1e9 + 1e-3 * np.tile([0.0, 1.0], 5_000)
    expected = 0.0005 * math.sqrt(10_000 / 9_999) / 1e9
    # 1e9 + 0.001 has a rounding error of its own, 6e-8, in each value.
    assert coefficient_of_variation(values) == pytest.approx(expected, rel=1e-3)
    by_squares = np.mean(values**2) - np.mean(values) ** 2
    assert by_squares != pytest.approx(2.5e-7, rel=0.5)  # what the formula avoids


def test_09_scatter_of_little() -> None:
    """9: one value and equal values have none; outliers move the robust one little."""
    assert coefficient_of_variation([3.0]) == 0.0
    assert coefficient_of_variation([3.0] * 5) == robust_variation([3.0] * 5) == 0.0
    normal = 10 + np.random.default_rng(9).standard_normal(20_000)
    assert robust_variation(normal) == pytest.approx(0.1, rel=0.05)
    spoiled = np.concatenate([normal, np.full(1_000, 1e6)])
    assert robust_variation(spoiled) == pytest.approx(0.1, rel=0.2)
    assert coefficient_of_variation(spoiled) > 1
    assert outliers(spoiled).high_severe == 1_000


@given(
    st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=60),
    st.sampled_from([0.05, 0.25, 0.5, 0.75, 0.95]),
)
def test_09_quantiles_are_those_of_numpy(values: list[float], p: float) -> None:
    """9: with ties or without, from one value on; the interval lies in the data and holds the estimate."""
    found = quantile(values, p)
    if found is None:
        assert p != 0.5
        return
    assert found.estimate == pytest.approx(float(np.quantile(values, p)), rel=1e-12)
    if found.low is not None:
        assert found.high is not None
        assert min(values) <= found.low <= found.estimate <= found.high <= max(values)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [3.0, 1.0, 2.0]])
def test_09_few_values_have_a_median_without_an_interval(values: list[float]) -> None:
    """9: n of 1, 2 and 3."""
    found = quantile(values)
    assert found
    assert (found.estimate, found.low, found.high) == (float(np.median(values)), None, None)


def test_09_equal_values_have_an_interval_of_no_width() -> None:
    """9: of launches, steps and pairs; a race of exactly equal numbers is `same`."""
    found = quantile([7.0] * 100)
    assert found
    assert (found.low, found.high, found.n_effective) == (7.0, 7.0, 100)
    assert find_steady([7e6] * 100).label == "flat"
    equal = decide([0.0] * 6, Rule(), "lower")
    assert equal
    assert (equal.verdict, equal.effect.low, equal.effect.high, equal.p_value) == ("same", 0.0, 0.0, 1.0)
    shifted = decide([math.log(1.1)] * 6, Rule(), "lower")
    assert shifted
    assert (shifted.verdict, shifted.p_value) == ("worse", 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_09_what_is_no_number_is_refused(bad: float) -> None:
    """9: NaN and infinities are errors that say so, never a verdict."""
    with pytest.raises(ValueError, match="finite"):
        quantile([1.0, 2.0, bad])
    with pytest.raises(ValueError, match="finite"):
        trimmed_mean([0.1, 0.2, 0.3, 0.4, bad])
    with pytest.raises(ValueError, match="finite"):
        decide([0.0] * 5 + [bad], Rule(), "lower")
    with pytest.raises(ValueError, match="finite"):
        find_steady([1.0] * 50 + [bad])
    with pytest.raises(ValueError, match="finite"):
        quantile([])


def test_09_a_fifth_is_trimmed_at_either_end() -> None:
    """9: of any number of values; two wild ones of ten do not move it."""
    assert float(trimmed_location([5.0])) == 5.0
    assert float(trimmed_location([1.0, 2.0, 3.0, 4.0])) == 2.5
    assert float(trimmed_location([1.0, 2.0, 3.0, 4.0, 100.0])) == 3.0
    assert float(trimmed_location([0.0] * 8 + [50.0, -1e9])) == 0.0
    with pytest.raises(ValueError, match="4 or more"):
        trimmed_mean([1.0, 2.0, 3.0])
