"""Acceptance tests 12 and 15 to 21: what a race says of simulated contenders, and how often it is wrong."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from measures import Rates, bare_threshold, fewest, most, pooled_t, rates, run_race, steps_mann_whitney
from noise_classes import (
    BAD,
    BIMODAL,
    CLASSES,
    DRIFT,
    HEAVY,
    POSITION,
    QUIET,
    SINE,
    TICKS,
    TYPICAL,
    WALK,
    Noise,
    log_ratios,
    sessions,
)
from round_rates import SLOW_WORLDS, WORLDS, races

from timetrial.analysis.pairs import GATE, step_time_log_ratios
from timetrial.statistics.dispersion import coarse_tick_ns
from timetrial.statistics.multiplicity import holm
from timetrial.statistics.verdict import Rule, decide

TRIALS = 2_000
DETECTING = 1_000  # races with an effect
NAMES = {id(noise): name for name, noise in CLASSES.items()}


def name_of(noise: Noise) -> str:
    return NAMES[id(noise)]


def assert_no_false_verdicts(found: Rates) -> None:
    """Of identical contenders, at most 1 % each are called better or worse."""
    assert found.counts["worse"] <= most(0.01, found.trials)
    assert found.counts["better"] <= most(0.01, found.trials)


def test_12_the_same_data_give_the_same_verdict() -> None:
    """12: bit by bit, from the seed of the noise to the verdict."""
    first, second = (
        run_race(log_ratios(sessions(BAD, 0.03, 1, np.random.default_rng(12)))[0], Rule()) for _ in range(2)
    )
    assert first == second
    assert first != run_race(log_ratios(sessions(BAD, 0.03, 1, np.random.default_rng(13)))[0], Rule())


@pytest.mark.parametrize("noise", [QUIET, TYPICAL, BAD, BIMODAL], ids=name_of)
def test_15_a_race_of_equals_finds_nothing(noise: Noise) -> None:
    """15: A/A in each class of noise."""
    assert_no_false_verdicts(rates(noise, 0.0, TRIALS, seed=15))


@pytest.mark.parametrize(
    "trials", [200, pytest.param(2_000, marks=pytest.mark.full)], ids=["everyday", "whole"]
)
@pytest.mark.parametrize("launch", [0.0, 0.05])
@pytest.mark.parametrize("world", ["white", "drifting", "bursty", *SLOW_WORLDS])
def test_15_rounds_chosen_by_what_scatters_bend_no_verdict(world: str, launch: float, trials: int) -> None:
    """15: A/A with as many rounds in each pair as the race itself would take."""
    one_of = (WORLDS | SLOW_WORLDS)[world]
    found = Counter(one.verdict for one in races(one_of, launch, 0.0, trials, seed=150))
    assert found["worse"] <= most(0.01, trials)
    assert found["better"] <= most(0.01, trials)


def test_16_ten_percent_are_found_whatever_rounds_there_are() -> None:
    """16: with the rounds of a restless machine. More of them are taken there than on a quiet one."""
    restless = list(races(WORLDS["bursty"], 0.02, 0.10, 100, seed=160))
    assert sum(one.verdict == "worse" for one in restless) >= fewest(0.97, 100)
    quiet = list(races(WORLDS["quiet"], 0.02, 0.10, 20, seed=160))
    few, many = (
        sum(one.rounds for one in kind) / sum(one.pairs for one in kind) for kind in (quiet, restless)
    )
    assert few < many


@pytest.mark.parametrize(
    ("noise", "power"), [(QUIET, 0.99), (TYPICAL, 0.99), (BAD, 0.88)], ids=["quiet", "typical", "bad machine"]
)
def test_16_five_percent_are_found(noise: Noise, power: float) -> None:
    """16: a challenger that takes 5 % longer is called worse, within 24 pairs; never better."""
    found = rates(noise, 0.05, DETECTING, seed=16)
    assert found.counts["worse"] >= fewest(power, DETECTING)
    assert found.counts["better"] == 0


@pytest.mark.parametrize("noise", [QUIET, TYPICAL, BAD], ids=name_of)
def test_16_ten_percent_always_and_one_percent_hardly_ever(noise: Noise) -> None:
    """16: +10 % in 99.9 %; +1 %, less than the smallest effect that counts, in at most 5 %."""
    assert rates(noise, 0.10, DETECTING, seed=160).counts["worse"] >= fewest(0.999, DETECTING)
    assert rates(noise, 0.01, DETECTING, seed=161).counts["worse"] <= most(0.05, DETECTING)


@pytest.mark.parametrize("noise", [DRIFT, WALK, SINE, POSITION], ids=name_of)
def test_17_drifts_and_places_in_the_order_are_no_effects(noise: Noise) -> None:
    """17: a drift of 10 % over the session, a random walk, a sine of the period of ABBA, and whoever is first
    paying 5 %."""
    assert_no_false_verdicts(rates(noise, 0.0, TRIALS, seed=17))


@pytest.mark.parametrize("noise", [BIMODAL, HEAVY, TICKS], ids=name_of)
def test_18_two_levels_heavy_tails_and_ticks_are_no_effects(noise: Noise) -> None:
    """18: launches with a slow mode, Cauchy noise of launches and steps, and a clock of 10 ms ticks."""
    assert_no_false_verdicts(rates(noise, 0.0, TRIALS, seed=18))


def test_18_a_coarse_clock_is_reported() -> None:
    """18: ticks are seen in every launch that has them, and in none that has not."""
    rng = np.random.default_rng(180)
    ticking = (sessions(TICKS, 0.0, 20, rng)[:, 0, :, 0].reshape(20, -1) * 10_000_000).astype(np.int64)
    assert [coarse_tick_ns(one) for one in ticking] == [10_000_000] * 20
    fine = (sessions(TYPICAL, 0.0, 20, rng)[:, 0, :, 0].reshape(20, -1) * 10_000_000).astype(np.int64)
    assert [coarse_tick_ns(one) for one in fine] == [None] * 20


@pytest.mark.parametrize("effect", [0.0, 0.04])
def test_19_the_verdict_does_not_depend_on_who_is_called_base(effect: float) -> None:
    """19: with the sides swapped, better is worse and the ratio is the inverse; the p-value is the same."""
    mirrored = {"worse": "better", "better": "worse"}
    for ratios in log_ratios(sessions(BAD, effect, 100, np.random.default_rng(19))):
        there, back = run_race(ratios, Rule()), run_race(-ratios, Rule())
        assert back.verdict == mirrored.get(there.verdict, there.verdict)
        assert back.pairs == there.pairs
        assert back.p_value == pytest.approx(there.p_value, rel=1e-9)
        assert (1 + there.effect.estimate) * (1 + back.effect.estimate) == pytest.approx(1.0, rel=1e-12)
        assert (1 + there.effect.low) * (1 + back.effect.high) == pytest.approx(1.0, rel=1e-12)


def test_19_what_is_good_turns_with_the_metric() -> None:
    """19: 10 % more time is worse, 10 % more samples a second is better."""
    ratios = [math.log(1.1) + 0.001 * k for k in (-2, -1, 0, 1, 2, 3)]
    slower, faster = decide(ratios, Rule(), "lower"), decide(ratios, Rule(), "higher")
    assert slower
    assert faster
    assert (slower.verdict, faster.verdict) == ("worse", "better")


def test_20_a_suite_of_a_hundred_races_stays_quiet() -> None:
    """20: a test fails if its race and an independent second one say worse. Of suites of 100 equal pairs on a
    bad machine at most 1 % have a failing test; without the second race about a third of them had."""
    suites, size = 60, 100
    rng = np.random.default_rng(20)
    alarms, failures = 0, 0
    for _ in range(suites):
        first = [run_race(ratios, Rule()) for ratios in log_ratios(sessions(BAD, 0.0, size, rng))]
        suspects = sum(one.verdict == "worse" for one in first)
        again = log_ratios(sessions(BAD, 0.0, suspects, rng)) if suspects else np.empty((0, 24))
        alarms += suspects > 0
        failures += any(run_race(ratios, Rule()).verdict == "worse" for ratios in again)
    assert failures <= most(0.01, suites)
    assert alarms >= fewest(0.2, suites)  # the second race had something to do


def test_20_holm_is_what_its_paper_says() -> None:
    """20: step by step, in the order asked, never below the p-value nor above 1; wrong input is refused."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.0001]) == pytest.approx([0.5, 0.0002])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    rng = np.random.default_rng(200)
    errs = sum(min(holm(list(rng.random(20)))) <= 0.05 for _ in range(2_000))
    assert fewest(0.045, 2_000) <= errs <= most(0.05, 2_000)
    with pytest.raises(ValueError, match="expected probabilities"):
        holm([0.5, math.nan])


def test_21_what_others_do_fails_on_the_same_data() -> None:
    """21, negative controls: a t-test over the pooled steps of all launches, Mann-Whitney over the steps of
    one pair, and a bare threshold of 5 % each call more than 10 % of equals different, while the rule of
    races does so in 1 % at most."""
    trials = 300
    durations = sessions(BAD, 0.0, trials, np.random.default_rng(21))
    for rule in (pooled_t, steps_mann_whitney, bare_threshold):
        assert sum(rule(one) for one in durations) > 0.10 * trials, rule.__name__
    verdicts = [run_race(ratios, Rule()).verdict for ratios in log_ratios(durations)]
    assert verdicts.count("worse") + verdicts.count("better") <= most(0.02, trials)


def test_the_simulation_computes_what_races_compute() -> None:
    """The numbers of a simulated pair are those that `timetrial.race` makes of the same step times."""
    durations = sessions(TYPICAL, 0.05, 1, np.random.default_rng(22))
    for pair in range(3):
        base, challenger = durations[0, pair, :, 0], durations[0, pair, :, 1]
        found = step_time_log_ratios(list(base), list(challenger))[GATE]
        assert found == pytest.approx(log_ratios(durations)[0, pair], abs=1e-12)


def test_each_direction_may_err_with_one_percent_over_all_looks() -> None:
    rule = Rule()
    errors = [(1 - rule.confidence_at(look)) / 2 for look in rule.looks]
    assert sum(errors) == pytest.approx(0.01)
    assert errors[0] < errors[1] == errors[2] == errors[3] == errors[4] < errors[5]
    other = Rule(looks=(6,), errors=(0.005,))
    assert other.confidence_at(6) == pytest.approx(0.99)
