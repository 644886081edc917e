"""How hard an experiment measures: the one place that decides sizes.

Fixed sizes for now. A stopping rule (steady state, narrow interval) will replace `sizes()` and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Effort = Literal["quick", "normal", "rigorous"]


@dataclass(frozen=True)
class Sizes:
    """What one case gets."""

    launches: int  # speed launches, one per block
    warmup_ns: int  # of each speed launch, before the first steady step
    steady_ns: int  # of each speed launch
    learning_seeds: int  # learning launches, one seed each; only with [train]


_SIZES: dict[str, Sizes] = {
    "quick": Sizes(launches=5, warmup_ns=300_000_000, steady_ns=700_000_000, learning_seeds=3),
    "normal": Sizes(launches=10, warmup_ns=1_000_000_000, steady_ns=3_000_000_000, learning_seeds=5),
    "rigorous": Sizes(launches=20, warmup_ns=2_000_000_000, steady_ns=8_000_000_000, learning_seeds=10),
}


def sizes(effort: Effort, *, launches: int | None = None, learning_seeds: int | None = None) -> Sizes:
    """The sizes of an effort, with the numbers of launches that the user asked for instead."""
    chosen = _SIZES[effort]
    if launches is not None:
        chosen = replace(chosen, launches=launches)
    if learning_seeds is not None:
        chosen = replace(chosen, learning_seeds=learning_seeds)
    return chosen
