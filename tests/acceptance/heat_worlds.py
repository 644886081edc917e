"""Heats as they might come out on a machine whose neighbors come and go: contenders in turns of 35 ms.

The machine, as measured on a shared two-core cloud machine: two levels, the slow one 10 to 30 % of the time,
for 0.2 to 6 s at a stretch. Each contender has a slowdown of its own there (1.2 to 1.5), each process a
constant of its own (0 to 2 %), a turn scatters by 1 %, and one turn in 300 stalls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
TURN_S = 0.035
SHORTEST_S, LONGEST_S = 0.2, 6.0  # of a stay on the slow level; lengths are log-uniform
STALLS, STALL = 1 / 300, np.log(3.0)


@dataclass(frozen=True)
class World:
    """What a heat meets. `between`: time that passes from turn to turn, as a share of the turn."""

    slow_share: float = 0.2
    launch_scatter: float = 0.01
    turn_scatter: float = 0.01
    sensitivity: tuple[float, float] = (1.2, 1.5)


WORLDS = {
    "quiet": World(slow_share=0.0),
    "neighbors 10 %": World(slow_share=0.1),
    "neighbors 20 %": World(slow_share=0.2),
    "neighbors 30 %": World(slow_share=0.3),
    "neighbors 20 %, launches alike": World(slow_share=0.2, launch_scatter=0.0),
    "neighbors 20 %, launches 2 %": World(slow_share=0.2, launch_scatter=0.02),
}


def slow_times(rng: np.random.Generator, turns: int, share: float) -> npt.NDArray[np.bool_]:
    """Which of so many turns, one after the other, fall on the slow level."""
    slow = np.zeros(turns, bool)
    if share <= 0:
        return slow
    log_span = np.log(LONGEST_S / SHORTEST_S)
    mean_stay = (LONGEST_S - SHORTEST_S) / log_span
    mean_gap = mean_stay * (1 - share) / share
    # Begins somewhere within the machine's life, not at the beginning of a gap.
    now = -rng.exponential(mean_stay + mean_gap)
    while now < turns * TURN_S:
        now += rng.exponential(mean_gap)
        stay = SHORTEST_S * np.exp(rng.uniform() * log_span)
        first, last = (int(max(0.0, place / TURN_S)) for place in (now, now + stay))
        slow[first:last] = True
        now += stay
    return slow


def heats(world: World, effects: Array, n_heats: int, rounds: int, rng: np.random.Generator) -> Array:
    """ln(step time) by heat, round and contender; `effects` are the contenders' own, on the same scale."""
    contenders = len(effects)
    sensitivity = np.log(rng.uniform(*world.sensitivity, contenders))
    found = np.empty((n_heats, rounds, contenders))
    for heat in range(n_heats):
        slow = slow_times(rng, rounds * contenders, world.slow_share)
        # Latin: each round another order.
        order = np.stack([np.roll(rng.permutation(contenders), shift) for shift in range(rounds)])
        launch = world.launch_scatter * rng.standard_normal(contenders)
        level = slow.reshape(rounds, contenders)
        values = np.empty((rounds, contenders))
        np.put_along_axis(values, order, level * sensitivity[order], axis=1)
        values += effects + launch + world.turn_scatter * rng.standard_normal((rounds, contenders))
        values += STALL * (rng.uniform(size=values.shape) < STALLS)
        found[heat] = values
    return found
