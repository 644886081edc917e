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
    no longer than `budget_ns`. When every case has its `launches`, further ones go to the cases whose
    intervals are wider than `half_width`, as long as they take no more than the share `further` of the time
    of those before.
    """

    launches: int  # speed launches, one per block
    half_width: float  # of the 95 % interval against the reference, as a fraction
    further: float
    rule: StopRule
    min_ns: int
    budget_ns: int
    warmup_ns: int  # of a profile launch
    steady_ns: int  # of a profile launch: its plain steps
    learning_seeds: int  # learning launches, one seed each; only with [train]


_MS = 1_000_000
_SIZES: dict[Effort, Sizes] = {
    "quick": Sizes(5, 0.03, 0.15, STOP_RULES["quick"], 400 * _MS, 1_500 * _MS, 300 * _MS, 700 * _MS, 3),
    "normal": Sizes(
        10, 0.01, 0.5, STOP_RULES["normal"], 1_000 * _MS, 6_000 * _MS, 1_000 * _MS, 3_000 * _MS, 5
    ),
    "rigorous": Sizes(
        20, 0.005, 1.0, STOP_RULES["rigorous"], 2_000 * _MS, 20_000 * _MS, 2_000 * _MS, 8_000 * _MS, 10
    ),
}


def sizes(effort: Effort, *, launches: int | None = None, learning_seeds: int | None = None) -> Sizes:
    """The sizes of an effort, with the numbers of launches that the user asked for instead: those are
    exact, so that nothing is added to them."""
    chosen = _SIZES[effort]
    if launches is not None:
        chosen = replace(chosen, launches=launches, further=0.0)
    if learning_seeds is not None:
        chosen = replace(chosen, learning_seeds=learning_seeds)
    return chosen
