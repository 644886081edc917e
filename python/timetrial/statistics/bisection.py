"""Bisection over whole numbers: the last one that does, on the way from the easiest to the hardest.

The largest batch that fits in memory is the way up; the smallest cap that is enough is the way down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

CONFIRMATIONS = 4  # that may fail before the search gives up


@dataclass(frozen=True)
class Bracket:
    """`does` did, twice (None: not even the easiest did); `fails`, the nearest harder one that was tried, did
    not (None: even the hardest does)."""

    does: int | None
    fails: int | None


def boundary(
    does: Callable[[int], bool],
    guess: int,
    *,
    easiest: int,
    hardest: int,
    precision: float,
    stride: float | None = None,
    grain: int = 1,
) -> Bracket:
    """In multiples of `grain`, as all four numbers are; those found differ by one, or by a factor of at most
    1 + `precision`. From the guess it goes by strides that grow, the first a factor of 1 + `stride` (like
    `precision` unless said: a good guess then takes three tries, itself, the next one, and itself again).

    Who does once may not another time (a heap's layout is drawn anew), so what was found is tried again, and
    where it does not then, the search goes on at the easier side of it.
    """
    up = hardest >= easiest
    search = _Search(does, precision, precision if stride is None else stride, grain)
    low, high = min(easiest, hardest), max(easiest, hardest)
    bracket = search.run(min(max(guess, low), high), easiest, hardest)
    for _ in range(CONFIRMATIONS):
        failed = bracket.does
        if failed is None or does(failed):
            return bracket
        if failed == easiest:
            return Bracket(None, failed)
        search = replace(search, stride=precision)
        next_easier = _within(search.beside(failed, precision, up=not up), failed, easiest)
        bracket = search.run(next_easier, easiest, failed, known_to_fail=failed)
    return Bracket(None, bracket.fails)


@dataclass(frozen=True)
class _Search:
    does: Callable[[int], bool]
    precision: float
    stride: float
    grain: int

    def run(self, size: int, easiest: int, hardest: int, known_to_fail: int | None = None) -> Bracket:
        """One that does and one that does not, by strides that grow; then between these."""
        up = hardest >= easiest
        good, bad = (size, known_to_fail) if self.does(size) else (None, size)
        share = max(self.stride, self.grain / size)
        while good is None and bad is not None:
            if bad == easiest:
                return Bracket(None, bad)
            size = _within(self.beside(bad, share, up=not up), bad, easiest)
            good, bad = (size, bad) if self.does(size) else (None, size)
            share = (1 + share) ** 2 - 1
        assert good is not None
        while bad is None:
            if good == hardest:
                return Bracket(good, None)
            size = _within(self.beside(good, share, up=up), good, hardest)
            good, bad = (size, None) if self.does(size) else (good, size)
            share = (1 + share) ** 2 - 1
        while not self._are_near(good, bad):
            middle = round(math.sqrt(good * bad) / self.grain) * self.grain
            low, high = min(good, bad) + self.grain, max(good, bad) - self.grain
            middle = min(max(middle, low), high)
            good, bad = (middle, bad) if self.does(middle) else (good, middle)
        return Bracket(good, bad)

    def beside(self, size: int, share: float, *, up: bool) -> int:
        """So much further, or the next one where that is less."""
        factor = 1 + share if up else 1 / (1 + share)
        further = round(size * factor / self.grain) * self.grain
        return max(further, size + self.grain) if up else min(further, size - self.grain)

    def _are_near(self, one: int, other: int) -> bool:
        low, high = min(one, other), max(one, other)
        return high - low <= self.grain or high <= low * (1 + self.precision)


def _within(size: int, start: int, end: int) -> int:
    """Not beyond the end."""
    return min(size, end) if end >= start else max(size, end)
