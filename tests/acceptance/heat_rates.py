"""Compares estimators of ratios from heats (issue: heats); prints tables, minutes on one core:

python tests/acceptance/heat_rates.py [how many experiments of each kind]

Each experiment has five contenders, the second equal to the first, the third 3 % slower, in `HEATS` heats.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from heat_worlds import WORLDS, Array, heats
from scipy import special, stats

EFFECTS = np.log(np.array([1.0, 1.0, 1.03, 2.1, 0.6]))
ROUNDS = 20
HEATS = (4, 6, 8)

# Of a heat: (rounds, contenders) -> ln(ratio to the first), one per contender.
OfHeat = Callable[[Array], Array]


def median_ratio(heat: Array) -> Array:
    """The median over rounds of paired ratios."""
    return np.asarray(np.median(heat - heat[:, :1], axis=0))


def trimmed_ratio(heat: Array) -> Array:
    """The 20 % trimmed mean over rounds of paired ratios: what a race does today."""
    return np.asarray(stats.trim_mean(heat - heat[:, :1], 0.2, axis=0))


def quarter_ratio(heat: Array) -> Array:
    """The ratio of lower quartiles: the level of a quiet machine, unpaired."""
    low = np.quantile(heat, 0.25, axis=0)
    return np.asarray(low - low[0])


def quiet_rounds(heat: Array) -> Array:
    """The median of paired ratios, of the rounds whose sum over all contenders is in the lower half: rounds
    on the slow level are slow for everyone. Within a round nobody's time decides about himself alone."""
    centered = heat - np.median(heat, axis=0)
    keep = np.argsort(centered.mean(axis=1))[: (len(heat) + 1) // 2]
    return median_ratio(heat[keep])


def medians(heat: Array) -> Array:
    """The ratio of medians, unpaired: a table of isolated launches."""
    middle = np.median(heat, axis=0)
    return np.asarray(middle - middle[0])


OF_HEAT: dict[str, OfHeat] = {
    "medians, unpaired": medians,
    "lower quartiles, unpaired": quarter_ratio,
    "trimmed mean of rounds": trimmed_ratio,
    "median of rounds": median_ratio,
    "median of quiet rounds": quiet_rounds,
}


def own_interval(values: Array) -> tuple[Array, Array]:
    """Student's over heats, each contender by itself: centers and half widths."""
    n = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(n)
    return values.mean(axis=0), special.stdtrit(n - 1, 0.975) * error


def pooled_interval(values: Array) -> tuple[Array, Array]:
    """Over heats, with residuals of contender + heat pooled over all contenders (randomised blocks)."""
    n, contenders = values.shape
    residuals = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    df = (n - 1) * (contenders - 1)
    variance = float((residuals**2).sum()) / df
    half = special.stdtrit(df, 0.975) * np.sqrt(2 * variance / n)
    return values.mean(axis=0), np.full(contenders, half)


def print_world(name: str, trials: int) -> None:
    world = WORLDS[name]
    for n in HEATS:
        rng = np.random.default_rng([n, len(name)])
        data = [heats(world, EFFECTS, n, ROUNDS, rng) for _ in range(trials)]
        for label, of_heat in OF_HEAT.items():
            values = np.array([[of_heat(one) for one in experiment] for experiment in data])
            cells = []
            for interval in (own_interval, pooled_interval):
                held, width, false, seen = 0.0, [], 0, 0
                for experiment in values:
                    center, half = interval(experiment)
                    inside = np.abs(center - (EFFECTS - EFFECTS[0])) <= half
                    held += inside[1:].mean()
                    width.append(half[1:].mean())
                    false += not inside[1]
                    seen += bool(center[2] - half[2] > 0)
                cells.append(
                    f"{100 * held / trials:.1f} % ±{100 * np.median(width):.1f} %, "
                    f"{100 * false / trials:.1f} %, {100 * seen / trials:.0f} %"
                )
            bias = 100 * float(np.median(values.mean(axis=1) - (EFFECTS - EFFECTS[0]), axis=0)[1:].mean())
            print(f"| {name} | {n} | {label} | {bias:+.2f} % | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(
        "| machine | heats | of a heat | bias | own: held, width, equals differ, +3 % seen | pooled: same |"
    )
    print("|---|---|---|---|---|---|")
    for world_name in WORLDS:
        print_world(world_name, trials)
