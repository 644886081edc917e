"""Races whose rounds are chosen by what scatters, simulated: prints a table of docs/statistics.md; takes some
minutes on one core:

python tests/acceptance/round_rates.py [how many races of each kind]

Each race is the real one from the turns on: `wanted_rounds` says how many rounds a pair has, the pair's
number is the ratio of their totals, `judge` looks at the pairs. A pair costs START_S and `round_s` for each
round: 0.16 s as measured on a shared machine with a step of 16 ms in PyTorch, two steps where these are slow.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from timetrial.analysis.pairs import GATE, judge
from timetrial.heats.heat import Ridden
from timetrial.races.rounds import wanted_rounds
from timetrial.records.race import PairRecord
from timetrial.statistics.totals import log_ratio, scatter_of_totals
from timetrial.statistics.verdict import Rule, Verdict

START_S = 4.5
MOST = 400  # rounds: what one minute holds
BASE, CHALLENGER = "base", "challenger"
EFFECTS = (0.0, 0.03, -0.03, 0.10)
LAUNCHES = (0.0, 0.02, 0.05, 0.10)  # standard deviation of a launch

Turns = npt.NDArray[np.float64]  # (rounds, 2), ln(step time)


@dataclass(frozen=True)
class World:
    """How turns scatter on a machine. Standard deviations of ln(step time) of a turn."""

    turn: float  # independent from turn to turn, with the tails of Student's t with 3 degrees of freedom
    drift: float = 0.0  # of a level that wanders from turn to turn, as AR(1) with 0.95
    bursts: float = 0.0  # the share of turns in bursts of about 8 turns, which slow one side by 20 to 100 %
    round_s: float = 0.16


WORLDS = {
    "quiet": World(0.01),
    "white": World(0.10),
    "drifting": World(0.05, drift=0.15),
    "bursty": World(0.05, bursts=0.2),
}
# A turn is one step; the longer it is, the more of the machine's noise it averages.
SLOW_WORLDS = {
    "steps of 1 s": World(0.05, drift=0.05, round_s=2.0),
    "steps of 10 s": World(0.03, drift=0.03, round_s=20.0),
    "steps of 60 s": World(0.02, drift=0.02, round_s=120.0),
}


def turns(world: World, rng: np.random.Generator) -> Turns:
    """Of all the rounds that a pair could have, without its launches' own times."""
    found = world.turn * rng.standard_t(3, (MOST, 2)) / math.sqrt(3)
    if world.drift:
        steps = world.drift * rng.standard_normal(2 * MOST)
        steps[1:] *= math.sqrt(1 - 0.95**2)
        found += lfilter([1.0], [1.0, -0.95], steps).reshape(MOST, 2)
    if world.bursts:
        place, flat = 0, found.reshape(-1)
        while place < len(flat):
            place += int(rng.exponential(8 * (1 - world.bursts) / world.bursts)) + 1
            length = int(rng.exponential(8)) + 1
            flat[place : place + length] += math.log(rng.uniform(1.2, 2.0))
            place += length
    return found


@dataclass(frozen=True)
class Simulated:
    """One race."""

    verdict: Verdict
    pairs: int
    rounds: int  # of all pairs
    seconds: float


def race(world: World, launch: float, effect: float, rng: np.random.Generator) -> Simulated:
    """From the first pair to the verdict, without a confirmation."""
    rule, seconds = Rule(), 0.0
    pairs: list[PairRecord] = []
    while True:
        logs = turns(world, rng) + launch * rng.standard_normal(2) + [0.0, math.log1p(effect)]
        count = 2
        while (wanted := _wanted(logs[:count], pairs, world.round_s)) > count:
            count = wanted
        seconds += START_S + count * world.round_s
        pairs.append(pair_of(len(pairs), *np.exp(logs[:count]).T))
        decision = judge([one.log_ratios[CHALLENGER][GATE] for one in pairs], rule, "lower")
        if decision is not None:
            rounds = sum(len(one.rounds) for one in pairs)
            return Simulated(decision.verdict, len(pairs), rounds, seconds)


def _wanted(logs: Turns, pairs: list[PairRecord], round_s: float) -> int:
    steps = [{0: base, 1: challenger} for base, challenger in np.exp(logs).tolist()]
    ridden = Ridden(START_S, round_s * len(steps), steps)
    return min(wanted_rounds(ridden, pairs, (BASE, CHALLENGER)), MOST)


def pair_of(number: int, base: npt.NDArray[np.float64], challenger: npt.NDArray[np.float64]) -> PairRecord:
    """By the time per step of each turn of both sides."""
    scatter = scatter_of_totals(base, challenger)
    return PairRecord(
        number=number,
        stage="judge",
        sides=[BASE, CHALLENGER],
        rounds=[[0, 1]] * len(base),
        log_ratios={CHALLENGER: {GATE: log_ratio(base, challenger)}},
        scatter={} if scatter is None else {CHALLENGER: scatter},
    )


def races(world: World, launch: float, effect: float, trials: int, seed: int) -> Iterator[Simulated]:
    """So many of one kind."""
    rng = np.random.default_rng(seed)
    return (race(world, launch, effect, rng) for _ in range(trials))


def print_rates(trials: int) -> None:
    columns = (
        "machine",
        "launches",
        "effect",
        "worse",
        "better",
        "same",
        "pairs",
        "rounds of a pair",
        "minutes",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name, world in (WORLDS | SLOW_WORLDS).items():
        for launch in LAUNCHES:
            for effect in EFFECTS:
                found = list(races(world, launch, effect, trials, seed=60))
                said = Counter(one.verdict for one in found)
                shares = [f"{100 * said[one] / trials:.1f} %" for one in ("worse", "better", "same")]
                pairs = sum(one.pairs for one in found)
                rounds = sum(one.rounds for one in found) / pairs
                minutes = sum(one.seconds for one in found) / trials / 60
                cells = [name, f"{100 * launch:g} %", f"{100 * effect:+g} %", *shares]
                print(
                    f"| {' | '.join(cells)} | {pairs / trials:.1f} | {rounds:.0f} | {minutes:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    print_rates(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
