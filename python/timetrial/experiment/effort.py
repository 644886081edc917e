"""How hard an experiment measures: the one place that decides sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from timetrial.analysis.stopping import STOP_RULES, StopRule

Effort = Literal["quick", "normal", "rigorous"]


@dataclass(frozen=True)
class Sizes:
    """What one case gets.

    A speed launch goes on for at least `min_ns` behind its first step and until `rule` is satisfied, and for
    no longer than `budget_ns`. How many launches there are is fixed beforehand and the same for every case:
    rows that stop because their interval looks narrow are rows that were lucky, and theirs would hold the
    truth in 75 to 90 % instead of 95 % (docs/statistics.md).
    """

    launches: int  # speed launches, one per block
    rule: StopRule
    min_ns: int
    budget_ns: int
    warmup_ns: int  # of a profile launch
    steady_ns: int  # of a profile launch: its plain steps
    learning_seeds: int  # learning launches, one seed each; only with [train]


_MS = 1_000_000
_SIZES: dict[Effort, Sizes] = {
    "quick": Sizes(6, STOP_RULES["quick"], 400 * _MS, 1_500 * _MS, 300 * _MS, 700 * _MS, 3),
    "normal": Sizes(12, STOP_RULES["normal"], 1_000 * _MS, 6_000 * _MS, 1_000 * _MS, 3_000 * _MS, 5),
    "rigorous": Sizes(24, STOP_RULES["rigorous"], 2_000 * _MS, 20_000 * _MS, 2_000 * _MS, 8_000 * _MS, 10),
}


def sizes(effort: Effort, *, launches: int | None = None, learning_seeds: int | None = None) -> Sizes:
    """The sizes of an effort, with the numbers of launches that the user asked for instead."""
    chosen = _SIZES[effort]
    if launches is not None:
        chosen = replace(chosen, launches=launches)
    if learning_seeds is not None:
        chosen = replace(chosen, learning_seeds=learning_seeds)
    return chosen
