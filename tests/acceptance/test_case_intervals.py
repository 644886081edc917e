"""Intervals over launches: how often they hold the truth, and that more launches never widen them.

The seeded simulations allow what the claimed rate allows, by the 99.9 % quantile of the binomial.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from launch_worlds import WORLDS, coverage, one_noisy, one_stalled_in_six, stopped
from scipy import special, stats

from timetrial.statistics import scatter
from timetrial.statistics.intervals import Estimate, positive_location, positive_locations
from timetrial.statistics.ranks import quantile_ranks
from timetrial.statistics.scatter import degrees_of, kept_of

LEAST, MOST = 0.93, 0.98
TRIALS = 600
CHANCE = 0.001


def within(held: float, trials: int, least: float = LEAST, most: float = MOST) -> bool:
    fewest, many = stats.binom.ppf(CHANCE, trials, least), stats.binom.ppf(1 - CHANCE, trials, most)
    return bool(fewest <= round(held * trials) <= many)


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("n", [6, 12])
def test_coverage_with_one_stalled_launch_in_six(rows: int, n: int) -> None:
    found = coverage(one_stalled_in_six, rows, n, TRIALS, seed=n)
    assert all(within(held, TRIALS) for held in found.held), found.held
    assert np.max(found.width) < 0.1, "a launch that takes twice as long moves it by less than 10 %"


@pytest.mark.parametrize("n", [3, 5, 6, 8])
@pytest.mark.parametrize("world", [name for name in WORLDS if "stalled" not in name])
def test_coverage_of_rows_that_scatter_alike_or_not(world: str, n: int) -> None:
    """Between 3 and 5 launches intervals are a little too wide rather than too narrow."""
    found = coverage(WORLDS[world], 6, n, TRIALS, seed=n)
    assert all(within(held, TRIALS, least=0.92, most=0.985) for held in found.held), found.held


@pytest.mark.full
@pytest.mark.parametrize(
    ("world", "n"),
    [
        (world, n)
        for world in WORLDS
        for n in (3, 4, 5, 6, 8, 10, 12, 20)
        # Of fewer than six launches none is trimmed: a stalled one shows as a wide interval.
        if "stalled" not in world or n % 6 == 0
    ],
)
@pytest.mark.parametrize("rows", [1, 2, 6, 14])
def test_coverage_in_every_world(world: str, rows: int, n: int) -> None:
    found = coverage(WORLDS[world], rows, n, 4_000, seed=rows * 100 + n)
    assert all(within(held, 4_000, least=0.92, most=0.985) for held in found.held), found.held


def test_control_order_statistics_reach_to_the_stalled_launch() -> None:
    """What was there before: of six launches the smallest and the largest."""

    def ranked(rows: Sequence[Sequence[float]]) -> list[Estimate | None]:
        found: list[Estimate | None] = []
        for row in rows:
            low, high = quantile_ranks(len(row))
            assert low is not None
            assert high is not None
            ordered = sorted(row)
            found.append(
                Estimate(float(np.median(row)), ordered[low - 1], ordered[high - 1], 6, "trimmed mean")
            )
        return found

    old, new = (
        coverage(one_stalled_in_six, 1, 6, 200, 1, estimator) for estimator in (ranked, positive_locations)
    )
    assert np.max(old.width) > 10 * np.max(new.width)


def test_control_a_variance_that_all_rows_share_fails_the_noisy_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pooled whatever a row's own launches say, the interval of the noisy row holds the truth in a third."""
    monkeypatch.setattr(scatter, "ENOUGH", 10_000)
    monkeypatch.setattr(scatter, "UNLIKE", (0.0, 1.0))
    found = coverage(one_noisy, 6, 5, 300, seed=1)
    assert found.held[-1] < 0.5


def test_more_launches_never_widen_an_interval_by_construction() -> None:
    """At the same scatter: the quantile of Student's t over the root of n, of a row alone and of one that
    borrows."""
    numbers = range(2, 60)
    for borrows in (False, True):
        factors = []
        for n in numbers:
            filled = borrows and n >= scatter.FEWEST_TO_BORROW
            df = max(degrees_of(n), scatter.ENOUGH) if filled else degrees_of(n)
            factors.append(float(special.stdtrit(df, 0.975)) / math.sqrt(n))
        assert all(later < before for before, later in itertools.pairwise(factors))


@pytest.mark.parametrize("rows", [1, 6])
def test_widths_shrink_from_launch_to_launch(rows: int) -> None:
    """Measured, with all that trimming costs: 5 to 12 launches, each narrower than the one before but for 2 %
    of chance, and 8 far narrower than 5."""
    widths = {
        n: float(np.median(coverage(WORLDS["alike"], rows, n, 600 // rows, seed=1).width))
        for n in (5, 6, 7, 8, 10, 12)
    }
    ordered = list(widths.values())
    assert all(later < 1.02 * before for before, later in itertools.pairwise(ordered)), widths
    assert widths[8] < 0.85 * widths[5]


def test_looking_at_widths_makes_rows_lie_that_stop_early() -> None:
    """Why the number of launches is fixed beforehand (effort.py): rows that stop at five because they look
    narrow hold the truth less often than said."""
    found = stopped(0.016, trials=300, seed=3)
    assert found.at_five > 0.1
    assert found.held_at_five < LEAST


def test_degrees_of_freedom_are_those_said() -> None:
    assert [degrees_of(n) for n in range(2, 13)] == [1, 2, 3, 3, 3, 4, 5, 5, 5, 6, 7]
    assert [kept_of(n) for n in (5, 6, 9, 10, 15, 20)] == [5, 4, 7, 6, 9, 12]
    for n in range(2, 400):
        assert degrees_of(n) <= min(kept_of(more) - 1 for more in range(n, 2 * n + 20))


def test_a_row_alone_has_yuens_interval() -> None:
    """Of six values: the four in the middle, the winsorized variance, three degrees of freedom."""
    values = [1.00, 1.01, 1.02, 1.03, 1.05, 9.0]
    logs = np.log(values)
    winsorized = np.array([logs[1], *logs[1:5], logs[4]])
    error = math.sqrt(5 * np.var(winsorized, ddof=1) / (4 * 3))
    found = positive_location(values)
    assert found is not None
    assert found.df == 3
    assert math.log(found.estimate) == pytest.approx(np.mean(logs[1:5]))
    assert math.log(found.high or 0) == pytest.approx(np.mean(logs[1:5]) + stats.t.ppf(0.975, 3) * error)
    assert found.high is not None
    assert found.high < 1.2
