"""Which of n sorted values enclose a quantile, without assuming a distribution (Conover, "Practical
Nonparametric Statistics", 3rd ed., section 3.2): how many values lie below the p-quantile is binomial."""

from __future__ import annotations

from scipy import stats


def quantile_ranks(n: int, p: float = 0.5, confidence: float = 0.95) -> tuple[int | None, int | None]:
    """Ranks, from 1, of the values that have the p-quantile below, above them with at most
    (1 - confidence) / 2 each. None where even the smallest or the largest value does not."""
    tail = (1 - confidence) / 2
    # Of the binomial number B of values below: the largest low with P(B < low) <= tail ...
    low = int(stats.binom.ppf(tail, n, p))
    if low > 0 and stats.binom.cdf(low - 1, n, p) > tail:
        low -= 1
    # ... and the smallest high with P(B >= high) <= tail.
    high = int(stats.binom.isf(tail, n, p)) + 1
    return low if low > 0 else None, high if high <= n else None
