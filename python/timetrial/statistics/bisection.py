"""Bisection over whole numbers: the largest that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CONFIRMATIONS = 4  # that may fail before the search gives up


@dataclass(frozen=True)
class Bracket:
    """`fits` did, twice (None: not even 1 did); the next that was tried, `beyond`, did not (None: even the
    most that may be asked fits)."""

    fits: int | None
    beyond: int | None


def largest(does_fit: Callable[[int], bool], guess: int, most: int, precision: float) -> Bracket:
    """From 1 to `most`; `fits` and `beyond` differ by 1, or by a share `precision` of `fits`. A good guess
    takes three tries: itself, the next one, and itself again.

    Who fits once may not another time (a heap's layout is drawn anew), so what was found is tried again, and
    if it does not fit then, the search goes on below it.
    """
    bracket = _search(does_fit, min(max(guess, 1), most), most, precision)
    for _ in range(CONFIRMATIONS):
        if bracket.fits is None or does_fit(bracket.fits):
            return bracket
        beyond = bracket.fits
        if beyond == 1:
            return Bracket(None, 1)
        below = _search(does_fit, beyond - _stride(beyond, precision), beyond - 1, precision)
        bracket = Bracket(below.fits, below.beyond or beyond)
    return Bracket(None, bracket.beyond)


def _stride(size: int, precision: float) -> int:
    """Of two sizes that are as good as neighbors."""
    return max(1, int(size * precision))


def _search(does_fit: Callable[[int], bool], guess: int, most: int, precision: float) -> Bracket:
    """One that fits and one that does not, from strides that double; then between these."""
    fits, beyond = (guess, None) if does_fit(guess) else (None, guess)
    stride = _stride(guess, precision)
    while fits is None and beyond is not None:
        if beyond == 1:
            return Bracket(None, 1)
        size = max(1, beyond - stride)
        fits, beyond = (size, beyond) if does_fit(size) else (None, size)
        stride *= 2
    assert fits is not None
    while beyond is None:
        if fits == most:
            return Bracket(fits, None)
        size = min(most, fits + stride)
        fits, beyond = (size, None) if does_fit(size) else (fits, size)
        stride *= 2
    while beyond - fits > _stride(fits, precision):
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if does_fit(middle) else (fits, middle)
    return Bracket(fits, beyond)
