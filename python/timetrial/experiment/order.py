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


def alike(items: Sequence[Item], kind: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Those of one kind together, kinds and their items in the order in which they came."""
    kinds: dict[Hashable, list[Item]] = {}
    for one in items:
        kinds.setdefault(kind(one), []).append(one)
    return list(kinds.values())


def in_turns(items: Sequence[Item], which: Callable[[Item], bool]) -> list[Item]:
    """Those of `which` it is true and the others, in their order, each kind evenly between the other."""
    placed: list[tuple[float, Item]] = []
    for those in alike(items, which):
        placed += [((place + 0.5) / len(those), one) for place, one in enumerate(those)]
    return [one for _, one in sorted(placed, key=lambda pair: pair[0])]
