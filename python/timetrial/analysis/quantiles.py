"""Quantiles of the steps of one launch, with intervals that know of correlation, or none at all.

The interval of the p-quantile lies between two order statistics: the ranks n * (p -+ z * sqrt(p (1 - p) /
n_eff)), or, below 30 effective samples, those of the binomial distribution (Conover, "Practical
Nonparametric Statistics", 3rd ed., section 3.2). A percentile that the sample cannot carry is refused:
n_eff * min(p, 1 - p) must be 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from timetrial.analysis.correlation import effective_size

FEWEST_BEYOND = 10  # effective samples on the smaller side of a quantile
FEWEST_FOR_NORMAL = 30  # effective samples, for the normal approximation of ranks


@dataclass(frozen=True)
class Quantile:
    """The p-quantile of a launch's steps. `low`, `high` None: too few effective samples for an interval."""

    p: float
    estimate: float
    low: float | None
    high: float | None
    n: int
    n_effective: float

    @property
    def half_width(self) -> float | None:
        """Half of the interval, as a fraction of the estimate."""
        if self.low is None or self.high is None or self.estimate == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.estimate)


def quantile(values: npt.ArrayLike, p: float = 0.5, confidence: float = 0.95) -> Quantile | None:
    """With its interval; None where the sample cannot carry this percentile (the median it always can).

    Raises ValueError for no values, or values that are not finite.
    """
    data = np.asarray(values, np.float64)
    if len(data) == 0 or not np.all(np.isfinite(data)):
        raise ValueError(
            f"expected finite values, got {len(data)} with {np.sum(~np.isfinite(data))} not finite"
        )
    size = effective_size(data, p)
    if p != 0.5 and size * min(p, 1 - p) < FEWEST_BEYOND:
        return None
    low, high = _ranks(len(data), size, p, confidence)
    data = np.sort(data)
    inside = low >= 0 and high < len(data)
    return Quantile(
        p,
        float(np.quantile(data, p)),
        float(data[low]) if inside else None,
        float(data[high]) if inside else None,
        len(data),
        size,
    )


def _ranks(n: int, n_effective: float, p: float, confidence: float) -> tuple[int, int]:
    """From 0; outside 0 to n - 1 where even the extremes do not enclose the quantile with this confidence."""
    if n_effective >= FEWEST_FOR_NORMAL:
        half = float(stats.norm.ppf((1 + confidence) / 2)) * math.sqrt(p * (1 - p) / n_effective)
        return math.floor(n * (p - half)) - 1, math.ceil(n * (p + half))
    whole = math.floor(n_effective)
    tail = (1 - confidence) / 2
    # The largest l with P(fewer than l below the quantile) <= tail, and the smallest u likewise from above.
    low = int(stats.binom.ppf(tail, whole, p))
    high = int(stats.binom.ppf(1 - tail, whole, p)) + 1
    if low <= 0 or high > whole:
        return -1, n
    return math.floor(low * n / whole) - 1, math.ceil(high * n / whole) - 1
