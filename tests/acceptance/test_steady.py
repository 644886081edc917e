"""Acceptance tests 13 and 14: warm-up is cut where it ends, and what is not steady is not called flat."""

from __future__ import annotations

import time

import numpy as np
import pytest
from measures import fewest, most
from noise_classes import Array, Noise, steps

from timetrial.statistics.steady import BLOCK_STEPS, Steady, across_launches, find_steady, mser

STEPS = 400
TRIALS = 200
STEP_NS = 30e6  # so long that a block is five steps
PLACES = np.arange(STEPS)


def launches(spread: float, shape: Array, seed: int) -> Array:
    noise = Noise(step=spread, spikes=0.02)
    return np.asarray(STEP_NS * shape * steps(noise, (TRIALS, STEPS), np.random.default_rng(seed)))


def undisturbed_median(spread: float) -> float:
    """Of launches without a transient; spikes lift it a little, and that is no bias of the cut."""
    return float(np.median(launches(spread, np.ones(STEPS), seed=1)))


@pytest.mark.parametrize("spread", [0.01, 0.03])
@pytest.mark.parametrize("tau", [3, 20])
@pytest.mark.parametrize("size", [0.5, 5.0])
def test_13_a_transient_leaves_no_bias(size: float, tau: int, spread: float) -> None:
    """13: where a steady state is accepted after a transient, its median is right within 0.3 %, and the
    transient is called warm-up; uncut, the median of all steps is further off."""
    data = launches(spread, 1 + size * np.exp(-PLACES / tau), seed=13)
    found = [find_steady(one) for one in data]
    accepted = [(one, steady) for one, steady in zip(data, found, strict=True) if steady.accepted]
    assert len(accepted) >= TRIALS / 4
    truth = undisturbed_median(spread)
    bias = float(np.mean([np.median(one[steady.first :]) for one, steady in accepted])) / truth - 1
    uncut = float(np.mean([np.median(one) for one, _ in accepted])) / truth - 1
    assert abs(bias) <= 0.003
    assert abs(bias) < uncut
    assert sum(steady.label != "warm-up" for _, steady in accepted) <= most(0.02, len(accepted))


@pytest.mark.parametrize("spread", [0.01, 0.03])
def test_13_nothing_is_cut_in_vain(spread: float) -> None:
    """13: without a transient at most 5 % of steps are cut on average; such a launch is seldom called
    anything but flat, or, if it is noisy, too noisy to tell."""
    found = [find_steady(one) for one in launches(spread, np.ones(STEPS), seed=130)]
    assert np.mean([one.first for one in found]) <= 0.05 * STEPS
    assert sum(one.label not in ("flat", None) for one in found) <= most(0.05, TRIALS)
    assert sum(one.label == "flat" for one in found) >= fewest(0.6, TRIALS)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("a decay as long as the launch", 1 + 5 * np.exp(-PLACES / 80)),
        ("a smaller one", 1 + 0.5 * np.exp(-PLACES / 80)),
        ("a drift of 2 %", 1 + 0.02 * PLACES / STEPS),
        ("a change in the middle", np.where(PLACES < STEPS // 2, 1.0, 1.05)),
        ("a change for the better", np.where(PLACES < STEPS // 2, 1.05, 1.0)),
        ("a stall every 10 steps", np.where(PLACES % 10 == 7, 1.5, 1.0)),
    ],
)
def test_14_what_is_not_steady_is_never_called_flat(name: str, shape: Array) -> None:
    """14: `flat` in at most 0.5 % of launches of 400 steps with 1 % noise."""
    found = [find_steady(one).label for one in launches(0.01, shape, seed=14)]
    assert found.count("flat") <= most(0.005, TRIALS), name


@pytest.mark.parametrize("change", [0.05, -0.05])
@pytest.mark.parametrize("place", [150, 205, 260])
def test_14_a_change_is_found_where_it_is(place: int, change: float) -> None:
    """14: within one block in 95 % of launches, upward and downward."""
    changed = np.ones(STEPS)
    changed[place:] += change
    found = [find_steady(one).change for one in launches(0.01, changed, seed=140)]
    near = sum(at is not None and abs(at - place) <= BLOCK_STEPS for at in found)
    assert near >= fewest(0.95, TRIALS)


def test_14_labels_say_what_was_seen() -> None:
    """14: each label and each reason, on one launch each."""

    def said(shape: Array) -> Steady:
        return find_steady(launches(0.01, shape, seed=141)[0])

    assert said(np.ones(STEPS)).label == "flat"
    assert said(1 + np.exp(-PLACES / 5)).label == "warm-up"
    assert said(1 - 0.5 * np.exp(-PLACES / 5)).label == "slowdown"
    assert said(1 + 0.2 * PLACES / STEPS).label == "drifting"
    assert "every 10th step" in said(np.where(PLACES % 10 == 7, 1.5, 1.0)).reason
    assert "level changed by +5" in said(np.where(PLACES < 200, 1.0, 1.05)).reason
    few = find_steady(np.full(20, STEP_NS))
    assert few.label is None
    assert not few.accepted
    assert "at least 6" in few.reason
    assert find_steady(np.empty(0)).label is None


def test_14_launches_that_disagree_are_inconsistent() -> None:
    """14: across launches; a short warm-up that is not always seen is no disagreement."""
    assert across_launches(["flat", "flat", "warm-up"]) == "flat"
    assert across_launches(["warm-up", None, "warm-up"]) == "warm-up"
    assert across_launches(["flat", "drifting"]) == "inconsistent"
    assert across_launches(["slowdown", "flat", "flat"]) == "inconsistent"
    assert across_launches([None, None]) is None


def test_mser_is_the_formula_of_its_paper() -> None:
    rng = np.random.default_rng(15)
    for n in (6, 7, 50, 321):
        blocks = 1e9 + rng.standard_normal(n) + 5 * np.exp(-np.arange(n) / 4)
        errors = [np.sum((blocks[d:] - blocks[d:].mean()) ** 2) / (n - d) ** 2 for d in range(n // 2 + 1)]
        assert mser(blocks) == int(np.argmin(errors))


def test_looking_at_a_long_launch_costs_no_more_than_at_a_short_one() -> None:
    """It is looked at again and again: blocks are at most 320, however many steps there are."""
    rng = np.random.default_rng(16)
    long, short = (STEP_NS * steps(Noise(step=0.01), (n,), rng) for n in (65_536, 1_600))
    assert find_steady(long).blocks <= 320

    def cost(data: Array) -> float:
        began = time.process_time()
        for _ in range(5):
            find_steady(data)
        return time.process_time() - began

    assert min(cost(long) for _ in range(3)) < 20 * min(cost(short) for _ in range(3))
