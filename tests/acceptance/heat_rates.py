"""Compares estimators of ratios from heats, and counts what the one in use gets wrong; prints the tables of
docs/statistics.md, in minutes on one core:

python tests/acceptance/heat_rates.py [how many experiments of each kind [rounds of a heat]]
python tests/acceptance/heat_rates.py results/8b7a      the same estimators on the heats of recorded results

Each experiment has five contenders, the second equal to the first, the third 3 % slower, in heats of ROUNDS
rounds.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from heat_worlds import WORLDS, Array, heats
from scipy import stats

from timetrial.analysis.heats import TurnTimes, by_round, levels_of
from timetrial.analysis.summary import Launch
from timetrial.experiment.effort import sizes
from timetrial.results.results import Results
from timetrial.statistics.alike import told_apart
from timetrial.statistics.intervals import Estimate, positive_locations

EFFECTS = np.log(np.array([1.0, 1.0, 1.03, 2.1, 0.6]))
QUICK = sizes("quick")
ROUNDS = QUICK.rounds
HEATS = (3, 4, 6, 8)
FEWEST_ROUNDS = 4  # with all contenders, of a recorded heat

# Of a heat: (rounds, contenders) -> ln(ratio to the first), one per contender.
OfHeat = Callable[[Array], Array]


def median_ratio(heat: Array) -> Array:
    """The median over rounds of paired ratios."""
    return np.asarray(np.median(heat - heat[:, :1], axis=0))


def trimmed_ratio(heat: Array) -> Array:
    """The 20 % trimmed mean over rounds of paired ratios."""
    return np.asarray(stats.trim_mean(heat - heat[:, :1], 0.2, axis=0))


def quarter_ratio(heat: Array) -> Array:
    """The ratio of lower quartiles: the level of a quiet machine, unpaired."""
    low = np.quantile(heat, 0.25, axis=0)
    return np.asarray(low - low[0])


def all_rounds(heat: Array) -> Array:
    """The ratio of totals over all rounds: what a race does."""
    levels = np.log(np.exp(heat).mean(axis=0))
    return np.asarray(levels - levels[0])


def level_ratio(heat: Array) -> Array:
    """What analysis/heats.py does: the ratio of totals over rounds that were quiet for the others."""
    rounds = np.arange(len(heat))
    levels = np.log([one.step_ns for one in levels_of([TurnTimes(rounds, t, t) for t in np.exp(heat).T])])
    return np.asarray(levels - levels[0])


def medians(heat: Array) -> Array:
    """The ratio of medians, unpaired: a table of isolated launches."""
    middle = np.median(heat, axis=0)
    return np.asarray(middle - middle[0])


OF_HEAT: dict[str, OfHeat] = {
    "medians, unpaired": medians,
    "lower quartiles, unpaired": quarter_ratio,
    "trimmed mean of rounds": trimmed_ratio,
    "median of rounds": median_ratio,
    "totals of all rounds": all_rounds,
    "totals of rounds quiet for others": level_ratio,
}


def intervals(values: Array) -> list[Estimate]:
    """Of the ratios to the first contender, as a table has them; (heats, contenders) logarithms."""
    found = positive_locations([np.exp(column) for column in values[:, 1:].T])
    return [one for one in found if one is not None]


def inside(found: list[Estimate]) -> list[bool]:
    """Whether each interval holds the truth."""
    truth = np.exp(EFFECTS - EFFECTS[0])[1:]
    return [bool((one.low or 0) <= true <= (one.high or 0)) for one, true in zip(found, truth, strict=True)]


def median_width(found: list[Estimate]) -> float:
    return float(np.median([one.half_width or np.inf for one in found]))


def until_narrow(values: Array) -> int:
    """How many heats an experiment with effort `quick` has."""
    for n in range(QUICK.fewest_heats, QUICK.most_heats):
        if median_width(intervals(values[:n])) <= (QUICK.half_width or 0):
            return n
    return QUICK.most_heats


def apart(values: Array) -> set[tuple[int, int]]:
    """Which pairs have no letter in common."""
    pairs = itertools.combinations(range(values.shape[1]), 2)
    return told_apart({(i, j): (values[:, i] - values[:, j]).tolist() for i, j in pairs})


def experiments(world: str, of_heat: OfHeat, n_heats: int, trials: int) -> Array:
    """(trials, heats, contenders): ln of the ratios to the first."""
    rng = np.random.default_rng([n_heats, len(world)])
    return np.array(
        [[of_heat(one) for one in heats(WORLDS[world], EFFECTS, n_heats, ROUNDS, rng)] for _ in range(trials)]
    )


def print_estimators(world: str, trials: int) -> None:
    for label, of_heat in OF_HEAT.items():
        values = experiments(world, of_heat, max(HEATS), trials)
        bias = 100 * float(np.median(values.mean(axis=1) - (EFFECTS - EFFECTS[0]), axis=0)[1:].mean())
        cells = []
        for n in HEATS:
            found = [intervals(one[:n]) for one in values]
            held = 100 * np.mean([inside(one) for one in found])
            width = 100 * np.median([median_width(one) for one in found])
            cells.append(f"{held:.1f} % (±{width:.1f} %)")
        print(f"| {world} | {label} | {bias:+.2f} % | {' | '.join(cells)} |", flush=True)


def print_stopping(world: str, trials: int) -> None:
    values = experiments(world, level_ratio, QUICK.most_heats, trials)
    counts = [until_narrow(one) for one in values]
    found = [intervals(one[:n]) for one, n in zip(values, counts, strict=True)]
    pairs = [apart(one[:n]) for one, n in zip(values, counts, strict=True)]
    print(
        f"| {world} | {np.mean(counts):.1f} | {100 * np.median([median_width(one) for one in found]):.1f} % "
        f"| {100 * np.mean([inside(one) for one in found]):.1f} % "
        f"| {100 * np.mean([(0, 1) in one for one in pairs]):.1f} % "
        f"| {100 * np.mean([(0, 2) in one for one in pairs]):.0f} % |",
        flush=True,
    )


def print_recorded(results: Results) -> None:
    """How far the ratios to the first row scatter from heat to heat, in the mean over the other rows."""
    by_heat: dict[int, list[Launch]] = {}
    for row in results.rows:
        for launch in row.launches:
            if launch.record.heat is not None and launch.turns is not None and launch.counts:
                by_heat.setdefault(launch.record.heat, []).append(launch)
    groups: dict[tuple[str, ...], list[Array]] = {}
    for launches in by_heat.values():
        turns = [one.turns for one in launches if one.turns is not None]
        table = np.log(by_round(turns, [one.step_ns for one in turns]))
        whole = table[np.isfinite(table).all(axis=1)]
        if len(whole) >= FEWEST_ROUNDS:
            groups.setdefault(tuple(one.record.case for one in launches), []).append(whole)
    print("| of a heat | scatter of ratios from heat to heat, by group |\n|---|---|")
    for label, of_heat in OF_HEAT.items():
        found = [np.array([of_heat(one)[1:] for one in own]) for own in groups.values() if len(own) > 1]
        cells = [f"{100 * own.std(axis=0, ddof=1).mean():.1f} % ({len(own)} heats)" for own in found]
        print(f"| {label} | {', '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdecimal():
        print_recorded(Results(Path(sys.argv[1])))
        sys.exit()
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    print(f"| machine | of a heat of {ROUNDS} rounds | bias | {' | '.join(f'{n} heats' for n in HEATS)} |")
    print("|---|---|---|" + "---|" * len(HEATS))
    for name in ("quiet", "neighbors 20 %", "neighbors 30 %"):
        print_estimators(name, trials)
    print("\n| machine | heats | median half width | holds the truth | equals apart | 3 % apart |")
    print("|---|---|---|---|---|---|")
    for name in WORLDS:
        print_stopping(name, trials)
