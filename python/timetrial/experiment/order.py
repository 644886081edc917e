"""In which order launches run: blocks, each with every case once, shuffled anew from the experiment's seed.

A slow drift of the machine then falls on all cases alike, and a case's neighbors change from block to block.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shuffled_block(items: Sequence[Item], *, seed: int, purpose: str, block: int) -> list[Item]:
    """The order of one block; the same for the same seed, on every machine."""
    order = list(items)
    random.Random(f"{seed}/{purpose}/{block}").shuffle(order)
    return order


def like_together(items: Sequence[Item], kind: Callable[[Item], Hashable]) -> list[Item]:
    """Those of one kind one behind the other, kinds and their items in the order in which they came."""
    kinds: dict[Hashable, list[Item]] = {}
    for one in items:
        kinds.setdefault(kind(one), []).append(one)
    return [one for those in kinds.values() for one in those]
