"""Ways through a batch of sequences of unequal lengths: values of the setting `lengths`. All give the same
numbers; they differ in how many steps behind the end of a sequence are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

SETTING = "lengths"
PARTS = 8  # rounded: to so many different numbers of steps at most
Whole = NDArray[np.int64]


def rounded(longest: int, steps: int) -> int:
    """The least number of eighths of all steps, in whole steps, that has room for the longest."""
    parts = PARTS * (longest - 1) // steps + 1
    return math.ceil(steps * parts / PARTS)


def _padded(lengths: Whole, steps: int) -> int:
    return len(lengths) * steps


def _rounded(lengths: Whole, steps: int) -> int:
    return len(lengths) * rounded(int(lengths.max()), steps)


def _trimmed(lengths: Whole, steps: int) -> int:
    return len(lengths) * int(lengths.max())


def _packed(lengths: Whole, steps: int) -> int:
    return int(lengths.sum())


_WAYS: Mapping[str, Callable[[Whole, int], int]] = {
    "padded": _padded,
    "rounded": _rounded,
    "trimmed": _trimmed,
    "packed": _packed,
}


def steps_by(way: str | None) -> Callable[[Whole, int], int] | None:
    """How many steps a way computes of a batch of these lengths (N), of sequences of so many steps; None: of
    no way that is known."""
    return _WAYS.get(way or "")
