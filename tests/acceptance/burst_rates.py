"""Races of steps whose work comes in bursts, simulated: prints a table of docs/statistics.md; takes some
minutes on one core:

python tests/acceptance/burst_rates.py [how many races of each kind]

Each race is the real one from the steps on: the first warm-up tells the span (`span_of`), `equal_steps`
makes turns of it, `wanted_rounds` says how many, the pair's number is the ratio of their totals, `judge`
looks at the pairs. The base takes 16 ms in every step. The challenger does more in some steps than in others,
and takes 5 % longer in the mean, or twice as long; where they are equal, both do.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import count

import numpy as np
import numpy.typing as npt
from round_rates import BASE, CHALLENGER, START_S, pair_of

from timetrial.analysis.pairs import GATE, judge
from timetrial.heats.heat import Ridden
from timetrial.heats.lengths import FEWEST_ROUNDS, cold_steps, equal_steps, may_be_longer
from timetrial.launch.turns import RHYTHM_STEPS
from timetrial.races.pair import RHYTHM_NS
from timetrial.races.rounds import wanted_rounds
from timetrial.records.race import PairRecord
from timetrial.statistics.rhythm import common_span, span_of
from timetrial.statistics.verdict import Rule, Verdict

Times = npt.NDArray[np.float64]  # of steps, in seconds
Steps = Callable[[int, np.random.Generator], Times]  # the first so many of a launch, alone on a quiet machine

STEP_S = 0.016
MOST_STEPS = 20_000
LAUNCH, LEVEL, NOISE = 0.01, 0.15, 0.05  # standard deviations of ln(step time)
LEVEL_STEPS = 40  # in which a level of the machine is forgotten
LONGEST_S = 4.0  # of a span, as in a heat


def periodic(period: int, mean: float) -> Steps:
    """Every so many steps one takes longer, so that the mean is `mean` of an even step."""

    def steps(number: int, rng: np.random.Generator) -> Times:
        times = np.ones(number)
        times[period - 1 :: period] += period * (mean - 1)
        return STEP_S * times

    return steps


def bursty(chance: float, mean: float) -> Steps:
    """Each step takes longer with this chance."""

    def steps(number: int, rng: np.random.Generator) -> Times:
        return STEP_S * (1 + (rng.random(number) < chance) * (mean - 1) / chance)

    return steps


def buffered(buffer: int, mean: float) -> Steps:
    """A loader that brings so many batches at once: one step waits for them, those behind it find theirs."""

    def steps(number: int, rng: np.random.Generator) -> Times:
        times = np.full(number, 0.5)
        times[buffer - 1 :: buffer] += buffer * (mean - 0.5)
        return STEP_S * times

    return steps


def even(number: int, rng: np.random.Generator) -> Times:
    """All alike."""
    return np.full(number, STEP_S)


def _levels(number: int, rng: np.random.Generator) -> Times:
    """Of the machine, ln(time), per step of one side; both sides of a round are on one level."""
    decay = np.exp(-1 / LEVEL_STEPS)
    return LEVEL * _ar1(rng.standard_normal(number), float(decay))


def _ar1(steps: Times, decay: float) -> Times:
    from scipy.signal import lfilter

    steps[1:] *= np.sqrt(1 - decay**2)
    return np.asarray(lfilter([1.0], [1.0, -decay], steps))


def race(base: Steps, challenger: Steps, rng: np.random.Generator) -> Verdict:
    """From the first pair to the verdict, without a confirmation."""
    rule, pairs, span = Rule(), list[PairRecord](), 1
    for number in count():
        sides = [
            side(MOST_STEPS, rng) * np.exp(LAUNCH * rng.standard_normal()) for side in (base, challenger)
        ]
        sides = [side * np.exp(NOISE * rng.standard_t(3, MOST_STEPS) / 3**0.5) for side in sides]
        warm = 4
        if number == 0:
            warm = min(RHYTHM_STEPS, int(RHYTHM_NS / 1e9 / STEP_S))
            spans = [span_of(side[:warm] * np.exp(_levels(warm, rng))) for side in sides]
            span = common_span(spans, int(LONGEST_S / STEP_S))
        pairs.append(_pair(number, [side[warm:] for side in sides], span, pairs, rng))
        decision = judge([one.log_ratios[CHALLENGER][GATE] for one in pairs], rule, "lower")
        if decision is not None:
            return decision.verdict
    raise AssertionError


def _pair(
    number: int, sides: list[Times], span: int, before: list[PairRecord], rng: np.random.Generator
) -> PairRecord:
    steps = equal_steps(1e9 * min(float(np.mean(side[:100])) for side in sides), span)
    whole = [
        side * np.exp(level) for side, level in zip(sides, [_levels(len(sides[0]), rng)] * 2, strict=True)
    ]
    turns: list[tuple[float, float]] = []
    raced: list[dict[int, float]] = []
    wanted, place, longer = FEWEST_ROUNDS, 0, 0
    while len(turns) < wanted:
        if len(turns) % 2 == 0:
            longer = int(rng.random() < 0.5 and may_be_longer(steps, span))
        end = place + steps + longer
        if end > len(whole[0]):
            break
        first = place + cold_steps(steps + longer)
        turns.append((float(np.mean(whole[0][first:end])), float(np.mean(whole[1][first:end]))))
        raced.append({side: 1e9 * float(np.mean(whole[side][place:end])) for side in (0, 1)})
        place = end
        if len(turns) == wanted:
            rounds_s = sum(sum(one.values()) for one in raced) * steps / 1e9
            wanted = wanted_rounds(Ridden(START_S, rounds_s, raced), before, (BASE, CHALLENGER))
    return pair_of(number, *np.array(turns).T)


KINDS: dict[str, Callable[[float], Steps]] = {
    **{f"a step in {n}": lambda mean, n=n: periodic(n, mean) for n in (2, 3, 4, 8, 16, 32, 64)},
    **{f"a step in {round(1 / p)}, by chance": lambda mean, p=p: bursty(p, mean) for p in (0.25, 0.05)},
    **{f"a buffer of {n}": lambda mean, n=n: buffered(n, mean) for n in (2, 8, 32)},
}


def print_rates(trials: int) -> None:
    """A line for each kind."""
    print(
        "| more work in | equal: worse | better | same | +5 %: better | worse | twice: worse | better, same |"
    )
    print("|---" * 8 + "|")
    for name, kind in KINDS.items():
        said = []
        for mean in (1.0, 1.05, 2.0):
            rng = np.random.default_rng(61)
            slow = kind(mean) if mean > 1 or name.startswith("a buffer") else kind(2.0)
            fast = even if mean > 1 or name.startswith("a buffer") else kind(2.0)
            said.append(Counter(race(fast, slow, rng) for _ in range(trials)))
        equal, little, twice = (
            {one: f"{100 * found[one] / trials:.1f} %" for one in ("worse", "better", "same")}
            for found in said
        )
        wrong = f"{100 * (said[2]['better'] + said[2]['same']) / trials:.1f} %"
        print(
            f"| {name} | {equal['worse']} | {equal['better']} | {equal['same']} | {little['better']} "
            f"| {little['worse']} | {twice['worse']} | {wrong} |",
            flush=True,
        )


if __name__ == "__main__":
    print_rates(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
