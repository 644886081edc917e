"""Accuracy over seeds and images: the interval, two rows compared, the figure of rows that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from timetrial.statistics.accuracy import (
    accuracy_of,
    accuracy_of_shares,
    discordance,
    most_untrained,
    over_seeds,
    pooled,
)


@given(st.integers(1, 6), st.integers(2, 400), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_no_interval_is_empty_and_none_leaves_0_to_1(
    seeds: int, images: int, share: float, seed: int
) -> None:
    right = np.random.default_rng(seed).random((seeds, images)) < share
    found = accuracy_of(right)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.estimate + 1e-12
    assert found.estimate - 1e-12 <= found.high <= 1
    assert found.high - found.low > 1e-4, "no row prints +-0.0"


def test_all_right_is_not_certainty() -> None:
    found = accuracy_of(np.ones((3, 360)))
    assert found is not None
    assert found.low == pytest.approx(0.989, abs=0.001)


def test_old_records_know_each_seeds_share_only() -> None:
    assert accuracy_of_shares([], 360) is None
    same, apart = accuracy_of_shares([0.97] * 3, 360), accuracy_of_shares([0.90, 0.97, 1.0], 360)
    assert same is not None
    assert apart is not None
    alone = accuracy_of(np.arange(360)[None, :] < round(0.97 * 360))
    assert alone is not None
    assert same.half_width == pytest.approx(alone.half_width, rel=0.05)
    assert (apart.half_width or 0) > 2 * (same.half_width or 0)


def test_two_rows_are_compared_image_by_image() -> None:
    base = np.ones((1, 100), bool)
    other = base.copy()
    other[0, :8] = False
    found = discordance(base, other)
    assert (found.only_first, found.only_second) == (8, 0)
    assert found.p_value == pytest.approx(2 / 2**8), "McNemar's exact test"
    assert discordance(base, base).p_value == 1
    with pytest.raises(ValueError, match="same seeds and images"):
        discordance(base, other[:, :50])


def test_seeds_that_err_on_the_same_images_are_no_further_evidence() -> None:
    """Five seeds, all wrong on the same three images: three pieces of evidence, not fifteen."""
    base = np.ones((5, 100), bool)
    other = base.copy()
    other[:, :3] = False
    assert discordance(base, other).p_value == pytest.approx(2 / 2**3)


def by_seed(rows: Any) -> list[dict[int, Any]]:
    return [dict(enumerate(row)) for row in rows]


def test_rows_that_compute_the_same_share_one_figure() -> None:
    rng = np.random.default_rng(1)
    level = 2 + rng.standard_normal(360)
    rows = [level + 0.3 * rng.standard_normal((3, 360)) > 0 for _ in range(6)]
    figure, alike = pooled(by_seed(rows))
    assert alike == [True] * 6
    assert figure is not None
    assert figure.estimate == pytest.approx(np.mean(rows))
    one = accuracy_of(rows[0])
    assert one is not None
    assert figure.n == 3, "rows of one seed are one learning, not six"


def test_a_row_that_learned_less_is_set_apart() -> None:
    rng = np.random.default_rng(1)
    level = 2 + rng.standard_normal(360)
    rows = [level + 0.3 * rng.standard_normal((3, 360)) > 0 for _ in range(6)]
    rows[4] = level - 0.7 + 0.3 * rng.standard_normal((3, 360)) > 0
    figure, alike = pooled(by_seed(rows))
    assert alike == [True, True, True, True, False, True]
    assert figure is not None
    assert figure.estimate == pytest.approx(np.mean([row for row, ok in zip(rows, alike, strict=True) if ok]))
    _, alike = pooled(by_seed([rows[0], rows[4]]))
    assert alike == [False, False], "of two nobody can say which is off"


def test_rows_that_are_equal_are_seldom_set_apart() -> None:
    """At most 1 % of experiments, whatever the number of rows; here 200 of four rows."""
    rng = np.random.default_rng(2)
    apart = 0
    for _ in range(200):
        level = 2 + rng.standard_normal(360)
        rows = [level + 0.3 * rng.standard_normal((3, 360)) > 0 for _ in range(4)]
        apart += not all(pooled(by_seed(rows))[1])
    assert apart <= stats.binom.ppf(0.999, 200, 0.01)


def test_a_row_that_collapses_with_one_seed_is_set_apart() -> None:
    rng = np.random.default_rng(5)
    level = 2 + rng.standard_normal(360)
    rows = [level + 0.3 * rng.standard_normal((3, 360)) > 0 for _ in range(5)]
    rows[1][2] = rng.random(360) < 0.1
    assert pooled(by_seed(rows))[1] == [True, False, True, True, True]


def test_seeds_that_only_one_learned_count_for_all() -> None:
    rng = np.random.default_rng(1)
    level = 2 + rng.standard_normal(360)
    first, second, third = (level + 0.3 * rng.standard_normal((3, 360)) > 0 for _ in range(3))
    rows = [{0: first[0]}, {0: second[0], 1: second[1]}, {0: third[0], 2: third[2]}]
    figure, alike = pooled(rows)
    assert alike == [True] * 3
    assert figure is not None
    assert figure.n == 3
    means = [np.mean([row[0] for row in rows]), np.mean(second[1]), np.mean(third[2])]
    assert figure.estimate == pytest.approx(np.mean(means))


@pytest.mark.parametrize(("lost", "is_alike"), [(0.02, True), (0.06, True), (0.09, False), (0.8, False)])
def test_with_one_seed_a_row_that_learned_less_is_held_against_what_is_known_of_trainings(
    lost: float, is_alike: bool
) -> None:
    base = np.ones((1, 1000), bool)
    worse = base.copy()
    worse[:, : int(1000 * lost)] = False
    assert pooled(by_seed([base, worse, base, base]))[1] == [True, is_alike, True, True]
    assert pooled(by_seed([base, worse]))[1] == [is_alike] * 2


def test_rows_without_a_seed_in_common_are_not_told_apart() -> None:
    figure, alike = pooled([{0: np.ones(100)}, {1: np.zeros(100)}])
    assert alike == [True, True]
    assert figure is not None
    assert figure.n == 2


def test_no_images_tell_nothing() -> None:
    assert over_seeds([np.ones((3, 0))] * 3) == [1.0] * 3
    assert pooled(by_seed([np.ones((3, 0))] * 3)) == (None, [True] * 3)


def test_rows_that_do_not_part_are_told_apart_by_images() -> None:
    base = np.ones((3, 100), bool)
    other = base.copy()
    other[:, :9] = False
    assert discordance(base, other).p_value == pytest.approx(2 / 2**9)


def test_over_seeds_is_the_paired_t_test_of_two() -> None:
    rng = np.random.default_rng(4)
    one, other = (rng.random((6, 50)) < share for share in (0.9, 0.7))
    expected = stats.ttest_rel(one.mean(axis=1), other.mean(axis=1)).pvalue
    assert over_seeds([one, other]) == pytest.approx([expected] * 2, rel=1e-9)


def test_untrained_weights_have_a_bound() -> None:
    """Seen from 60 to 300 seeds each: at most 0.25 of ten classes. Guessing is far below it."""
    assert 0.25 < most_untrained(0.1, 10, 10_000) < 0.5
    assert most_untrained(0.01, 100, 10_000) < 0.05
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 10, 1000)
    guesses = [np.mean(rng.integers(0, 10, 1000) == truth) for _ in range(200)]
    assert max(guesses) < most_untrained(0.1, 10, 1000)
    # Whoever always answers the most frequent class is no better than chance.
    assert most_untrained(0.6, 10, 1000) > 0.6
    assert most_untrained(0.5, 2, 1000) == 1.0
    assert most_untrained(1.0, 1, 5) == 1.0
    assert most_untrained(0.5, 10, 3) == 1.0
