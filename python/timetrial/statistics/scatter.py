"""How far launches of a row scatter, and what it may borrow from rows beside it. Pure functions of arrays.

From six launches on a row is a 20 % trimmed mean with its winsorized variance (trimmed.py), so that one
stalled launch in six moves little; below six nothing is trimmed. Degrees of freedom are those of the fewest
that any larger number of launches would have: 1, 2, 3, 3, 3, 4, 5, 5, 5 for 2 to 10. Trimming one more value
costs two degrees, and without this rule a sixth or a tenth launch would widen the interval.

A row with fewer than ENOUGH degrees of its own borrows the missing ones from the rows that it is pooled with:

    variance = (borrowed * pooled + own * variance of the row) / (borrowed + own)

as the moderated variance of Smyth ("Linear models and empirical Bayes methods", Statistical Applications in
Genetics and Molecular Biology 3, 2004) with a prior of this fixed weight. The pooled variance is the median
over the other rows, so one row with a stalled launch does not widen all. A row that scatters unlike them
stands on its own: above the upper quartile of the ratio of variances (F), because a row noisier than the
pool would be given an interval too narrow, and below its 5th percentile, because a quiet row would be given
one many times too wide. The rates behind these limits: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from timetrial.statistics.trimmed import TRIM

TRIMMED_FROM = 6  # launches
ENOUGH = 6  # degrees of freedom
FEWEST_TO_BORROW = 3  # launches: with two, a row that scatters unlike the others could not show it
UNLIKE = (0.05, 0.75)  # quantiles of F between which a row's variance is taken for the pool's


@dataclass(frozen=True)
class Scatter:
    """Where the values of a row lie, and their variance. All values on one additive scale: logarithms."""

    location: float
    variance: float  # of one launch: n times the squared standard error of the location
    n: int
    kept: int  # values that were not trimmed
    df: int  # for Student's t; see the top of this file

    @property
    def own_df(self) -> int:
        """What the variance itself has."""
        return self.kept - 1


@dataclass(frozen=True)
class Interval:
    """Two-sided, with the degrees of freedom that it stands on; `borrowed` of them from other rows."""

    low: float
    high: float
    df: int
    borrowed: int


def kept_of(n: int) -> int:
    """How many of n values are not trimmed."""
    return n if n < TRIMMED_FROM else n - 2 * int(TRIM * n)


@cache
def degrees_of(n: int) -> int:
    """Degrees of freedom for n launches: of those of n and more, the fewest (they dip where one more value is
    trimmed, by two, and have caught up after three launches)."""
    return min(kept_of(more) - 1 for more in range(n, n + 6))


def scatter_of(values: npt.ArrayLike) -> Scatter:
    """Of at least two finite values. ValueError otherwise."""
    data = np.sort(np.asarray(values, np.float64))
    n = len(data)
    if n < 2 or not np.all(np.isfinite(data)):
        raise ValueError(f"expected 2 or more finite values, got {np.asarray(values).tolist()!r}")
    kept = kept_of(n)
    cut = (n - kept) // 2
    winsorized = np.clip(data, data[cut], data[n - 1 - cut])
    squares = float(np.var(winsorized, ddof=1)) * (n - 1)
    return Scatter(
        location=float(np.mean(data[cut : n - cut])),
        variance=squares * n / (kept * (kept - 1)),
        n=n,
        kept=kept,
        df=degrees_of(n),
    )


def pooled_variance(rows: Sequence[Scatter]) -> float:
    """Of one launch, for rows that scatter alike: the median over rows, each over the median of its
    chi-square. ValueError without rows."""
    if not rows:
        raise ValueError("expected at least one row to pool")
    return float(np.median([one.variance / _chi_square_median(one.own_df) for one in rows]))


def interval_of(own: Scatter, others: Sequence[Scatter], confidence: float = 0.95) -> Interval:
    """Of the location of a row that is pooled with `others` (without itself)."""
    variance, df, borrowed = moderated(own, others)
    half = float(special.stdtrit(df, (1 + confidence) / 2)) * float(np.sqrt(variance / own.n))
    return Interval(own.location - half, own.location + half, df, borrowed)


def moderated(own: Scatter, others: Sequence[Scatter]) -> tuple[float, int, int]:
    """The variance of one launch, its degrees of freedom, and how many of them are borrowed from `others`."""
    borrowed, variance = 0, own.variance
    lenders = [one for one in others if one.n >= FEWEST_TO_BORROW]
    missing = ENOUGH - own.df
    if lenders and missing > 0 and own.n >= FEWEST_TO_BORROW:
        pool = pooled_variance(lenders)
        if _is_alike(own, pool, sum(one.own_df for one in lenders)):
            borrowed = missing
            variance = (borrowed * pool + own.df * own.variance) / ENOUGH
    return variance, own.df + borrowed, borrowed


def _is_alike(own: Scatter, pool: float, pool_df: int) -> bool:
    low, high = (_f_quantile(own.own_df, pool_df, p) for p in UNLIKE)
    return low * pool <= own.variance <= high * pool


@cache
def _chi_square_median(df: int) -> float:
    """Over its degrees of freedom."""
    return float(special.chdtri(df, 0.5)) / df


@cache
def _f_quantile(df: int, other_df: int, p: float) -> float:
    return float(special.fdtri(df, other_df, p))
