"""How many rounds a pair takes, and a heat: by what they cost and how they scatter, never by their ratio."""

from __future__ import annotations

import math

import numpy as np
import pytest

from timetrial.heats.heat import Ridden
from timetrial.heats.rounds import HeatRounds, launch_scatter, optimal_rounds
from timetrial.races.rounds import fewest_rounds, wanted_rounds
from timetrial.records.race import PairRecord

SIDES = ("base", "challenger")


def ridden(
    rounds: int,
    scatter: float,
    *,
    start_s: float = 4.0,
    round_s: float = 0.1,
    ratio: float = 1.0,
    seed: int = 1,
) -> Ridden:
    noise = np.random.default_rng(seed).standard_normal(rounds)
    noise = scatter * (noise - noise.mean()) / noise.std()
    steps = [{0: 1.0, 1: ratio * math.exp(one)} for one in noise]
    return Ridden(start_s, rounds * round_s, steps)


def pair(value: float, rounds: int, scatter: float) -> PairRecord:
    return PairRecord(
        number=0, stage="judge", sides=list(SIDES), rounds=[[0, 1]] * rounds,
        log_ratios={"challenger": {"mean": value}}, scatter={"challenger": scatter},
    )  # fmt: skip


def test_the_more_rounds_scatter_the_more_there_are() -> None:
    counts = [wanted_rounds(ridden(16, scatter), (), SIDES) for scatter in (0.01, 0.1, 0.3, 0.9)]
    assert counts == sorted(counts)
    assert counts[0] == 16, "those that were ridden are enough"
    assert counts[3] > 4 * counts[0]


def test_what_a_start_costs_buys_rounds_and_what_a_round_costs_saves_them() -> None:
    cheap, dear = (wanted_rounds(ridden(16, 0.3, start_s=one), (), SIDES) for one in (1.0, 30.0))
    assert cheap < dear
    short, long = (wanted_rounds(ridden(16, 0.3, round_s=one), (), SIDES) for one in (0.02, 0.5))
    assert long < short


def test_launches_that_differ_are_not_cured_by_rounds() -> None:
    alike = [pair(0.002 * (-1) ** k, 50, 0.1) for k in range(8)]
    apart = [pair(0.10 * (-1) ** k, 50, 0.1) for k in range(8)]
    assert wanted_rounds(ridden(16, 0.1), apart, SIDES) < wanted_rounds(ridden(16, 0.1), alike, SIDES)


@pytest.mark.parametrize("ratio", [0.01, 0.5, 1.1, 3.0])
def test_the_ratio_has_no_say(ratio: float) -> None:
    before = [pair(math.log(ratio) + 0.01 * (-1) ** k, 30, 0.2) for k in range(4)]
    equal = [pair(0.01 * (-1) ** k, 30, 0.2) for k in range(4)]
    assert wanted_rounds(ridden(16, 0.3, ratio=ratio), before, SIDES) == wanted_rounds(
        ridden(16, 0.3), equal, SIDES
    )


def test_it_is_asked_again_behind_the_first_eight() -> None:
    assert wanted_rounds(ridden(2, 0.3), (), SIDES) == 8


@pytest.mark.parametrize(("round_s", "fewest"), [(1e-5, 8), (1.25, 8), (1.5, 6), (6.0, 2), (60.0, 2)])
def test_eight_at_least_unless_they_take_longer_than_ten_seconds(round_s: float, fewest: int) -> None:
    assert fewest_rounds(round_s, 2) == fewest


@pytest.mark.parametrize("round_s", [0.05, 1.0, 40.0])
def test_no_more_than_a_minute_holds(round_s: float) -> None:
    wanted = wanted_rounds(ridden(8, 5.0, round_s=round_s, start_s=1e6), (), SIDES)
    assert wanted * round_s <= 60.0 or wanted == 8


def test_each_side_is_at_each_place_equally_often() -> None:
    seen = ridden(9, 0.4)
    three = Ridden(seen.start_s, seen.rounds_s, [{**one, 2: 1.5 * one[1]} for one in seen.step_ns])
    assert wanted_rounds(three, (), ("base", "first", "second")) % 3 == 0


def test_a_few_launches_say_little_of_what_launches_scatter_by() -> None:
    assert launch_scatter([0.3], [0.0]) == 0.02
    two, many = ([0.2 * (-1) ** k for k in range(n)] for n in (2, 200))
    assert launch_scatter(two, [0.0] * 2) < launch_scatter(many, [0.0] * 200)
    assert launch_scatter(many, [0.0] * 200) == pytest.approx(0.2, rel=0.05)
    assert launch_scatter([0.0] * 200, [1.0] * 200) < 0.005, "rounds explain all of it"


def test_the_optimum_is_that_of_kalibera_and_jones() -> None:
    """Section 6.1: the root of the ratio of costs times that of variances; of it a pair takes six tenths."""
    assert optimal_rounds(4.0, 0.04, 0.2, 0.02) == pytest.approx(0.6 * 10 * 10)


def test_heats_of_a_table_take_whole_blocks() -> None:
    rounds = HeatRounds()
    quiet, restless = ridden(14, 0.02), ridden(14, 0.9)
    assert rounds.wanted(quiet, 14) == 14
    wanted = rounds.wanted(restless, 14)
    assert wanted > 14
    assert wanted % 14 == 0
    for _ in range(8):
        rounds.note(quiet)
    assert rounds.wanted(restless, 14) < wanted, "earlier heats have a say"


def test_of_one_contender_alone_nothing_is_known() -> None:
    seen = Ridden(4.0, 1.4, [{0: 1.0}] * 14)
    assert HeatRounds().wanted(seen, 14) == 14
