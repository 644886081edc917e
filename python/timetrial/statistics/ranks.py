"""Which of n sorted values enclose a quantile, without assuming a distribution (Conover, "Practical
Nonparametric Statistics", 3rd ed., section 3.2): how many values lie below the p-quantile is binomial."""

from __future__ import annotations

import math

from scipy import special


def quantile_ranks(n: int, p: float = 0.5, confidence: float = 0.95) -> tuple[int | None, int | None]:
    """Ranks, from 1, of the values that have the p-quantile below, above them with at most
    (1 - confidence) / 2 each. None where even the smallest or the largest value does not."""
    tail = (1 - confidence) / 2
    # Of the binomial number B of values below: the largest low with P(B < low) <= tail, and, counted from
    # above, the smallest high with P(B >= high) <= tail.
    low, from_above = _largest(n, p, tail), _largest(n, 1 - p, tail)
    return low or None, n + 1 - from_above if from_above else None


def _largest(n: int, p: float, tail: float) -> int:
    """The largest rank with P(B < rank) <= tail; 0: none."""
    about = special.bdtrik(tail, n, p)  # between whole numbers; NaN below 0
    rank = 0 if math.isnan(about) else min(math.floor(about) + 1, n)
    while rank > 0 and special.bdtr(rank - 1, n, p) > tail:
        rank -= 1
    while rank < n and special.bdtr(rank, n, p) <= tail:
        rank += 1
    return rank
