"""Bisection over sizes: the smallest that is enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

PAGE = 4096
STRIDE = 1.5  # between sizes that are tried until one is enough and one is not
CONFIRMATIONS = 4  # that may fail before the search gives up


@dataclass(frozen=True)
class Bracket:
    """`enough` was, twice; `short` was not (None: the least that may be asked was enough)."""

    enough: int
    short: int | None


def smallest(
    is_enough: Callable[[int], bool], guess: int, least: int, most: int, precision: float
) -> Bracket | None:
    """In bytes, whole pages; `enough` is at most (1 + `precision`) times `short`. None: not even `most`
    is enough.

    Who runs in a size once may need more another time (the heap's layout is drawn anew), so what was found
    is tried again, and where it is not enough then, the next larger size is.
    """
    least, most = _pages(least), _pages(most)
    enough, short = _enclosed(is_enough, min(most, max(least, _pages(guess))), least, most)
    if enough is None:
        return None
    while short is not None and enough > short * (1 + precision) and enough - short > PAGE:
        middle = _pages(int(math.sqrt(short * enough)))
        middle = middle if short < middle < enough else short + PAGE
        if is_enough(middle):
            enough = middle
        else:
            short = middle
    runs, failures = 1, 0
    while failures < CONFIRMATIONS:
        if is_enough(enough):
            runs += 1
            if runs == 2:
                return Bracket(enough, short)
        else:
            runs, failures = 0, failures + 1
            short, enough = enough, min(most, _pages(int(enough * (1 + precision))))
    return None


def _enclosed(
    is_enough: Callable[[int], bool], size: int, least: int, most: int
) -> tuple[int | None, int | None]:
    """A size that is enough, and one that is not."""
    if is_enough(size):
        enough = size
        while enough > least:
            size = max(least, _pages(int(enough / STRIDE)))
            if not is_enough(size):
                return enough, size
            enough = size
        return enough, None
    short = size
    while short < most:
        size = min(most, _pages(int(short * STRIDE)))
        if is_enough(size):
            return size, short
        short = size
    return None, short


def _pages(size: int) -> int:
    return max(1, math.ceil(size / PAGE)) * PAGE
