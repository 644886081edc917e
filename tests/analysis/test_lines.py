"""Lines over sizes: their intervals hold the truth as often as they say, and a curve is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from timetrial.statistics.lines import Line, fit_line

SIZES = [16.0, 64.0, 128.0, 256.0]


def test_a_straight_line_is_found() -> None:
    line = fit_line(SIZES, [500 + 3 * size for size in SIZES])
    assert line.fixed.estimate == pytest.approx(500)
    assert line.each.estimate == pytest.approx(3)
    assert line.worst < 1e-9
    reached = line.reaches(2_000)
    assert reached is not None
    assert (reached.estimate, reached.low, reached.high) == pytest.approx((500, 500, 500))


def test_it_is_least_squares() -> None:
    values = [530.0, 700.0, 870.0, 1290.0]
    each, fixed = np.polyfit(SIZES, values, 1)
    line = fit_line(SIZES, values)
    assert (line.fixed.estimate, line.each.estimate) == pytest.approx((fixed, each))
    each, fixed = np.polyfit(SIZES, values, 1, w=1 / np.array(values))
    line = fit_line(SIZES, values, relative=True)
    assert (line.fixed.estimate, line.each.estimate) == pytest.approx((fixed, each))


@pytest.mark.parametrize("relative", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(relative: bool) -> None:
    """Of both parts, of the next value, and of the size that reaches one: 95 % of 1,000 lines each, within
    four standard errors of such a count."""
    random = np.random.default_rng(1)
    sizes = np.array(SIZES)
    truth = 500 + 3 * sizes
    held = dict.fromkeys(("fixed", "each", "next", "reached"), 0)
    trials = 1_000
    for _ in range(trials):
        scale = 0.02 * truth if relative else 20.0
        line = fit_line(sizes.tolist(), (truth + scale * random.normal(size=4)).tolist(), relative=relative)
        following = 500 + 3 * 400
        seen = following + (0.02 * following if relative else 20.0) * random.normal()
        reached = line.reaches(seen)
        assert reached is not None
        held["fixed"] += line.fixed.holds(500)
        held["each"] += line.each.holds(3)
        held["next"] += line.at(400).holds(seen)
        held["reached"] += reached.holds(400)
    slack = 4 * math.sqrt(0.95 * 0.05 / trials)
    assert {name: abs(count / trials - 0.95) < slack for name, count in held.items()} == dict.fromkeys(
        held, True
    ), held


def test_a_curve_is_told() -> None:
    line = fit_line([1, 10, 100], [1, 100, 10_000])
    assert line.worst > 0.5


def test_what_does_not_grow_reaches_nothing() -> None:
    assert fit_line(SIZES, [500, 510, 490, 500]).reaches(600) is None


def test_what_is_there_already_is_reached_at_0() -> None:
    line = fit_line(SIZES, [500 + 3 * size for size in SIZES])
    reached = line.reaches(100)
    assert reached is not None
    assert (reached.estimate, reached.low, reached.high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("sizes", "values", "relative"),
    [
        ([1, 2], [1, 2], False),
        ([1, 2, 2], [1, 2, 3], False),
        ([1, 2, 3], [0, 1, 2], True),
        ([1, 2, 3], [1], False),
    ],
)
def test_too_little_is_refused(sizes: list[float], values: list[float], relative: bool) -> None:
    with pytest.raises(ValueError, match=r"expected 3 at least|must be above 0"):
        fit_line(sizes, values, relative=relative)


def test_two_lines_are_equal_if_their_numbers_are() -> None:
    values = [500 + 3 * size for size in SIZES]
    assert isinstance(fit_line(SIZES, values), Line)
    assert fit_line(SIZES, values) == fit_line(SIZES, values)
