"""Quantiles of the steps of one launch, with intervals that know of correlation, or none at all.

The interval of the p-quantile lies between two order statistics: those of n_eff independent values
(ranks.py), carried over to n. A percentile that the sample cannot carry is refused: n_eff * min(p, 1 - p)
must be 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timetrial.statistics.correlation import effective_size
from timetrial.statistics.ranks import quantile_ranks

_Values = npt.NDArray[np.float64]
FEWEST_BEYOND = 10  # effective samples on the smaller side of a quantile


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
    """As of quantiles()."""
    return quantiles(values, [p], confidence)[0]


def quantiles(values: npt.ArrayLike, ps: Sequence[float], confidence: float = 0.95) -> list[Quantile | None]:
    """Each with its interval; None where the sample cannot carry this percentile (the median it always can).

    Raises ValueError for no values, or values that are not finite.
    """
    data = np.asarray(values, np.float64)
    if len(data) == 0 or not np.all(np.isfinite(data)):
        raise ValueError(
            f"expected finite values, got {len(data)} with {np.sum(~np.isfinite(data))} not finite"
        )
    ordered = np.sort(data)
    return [_quantile(data, ordered, p, confidence) for p in ps]


def _quantile(data: _Values, ordered: _Values, p: float, confidence: float) -> Quantile | None:
    estimate = _at(ordered, p)
    size = effective_size(data, estimate)
    if p != 0.5 and size * min(p, 1 - p) < FEWEST_BEYOND:
        return None
    whole = math.floor(size)
    low, high = quantile_ranks(whole, p, confidence)
    if low is None or high is None:
        return Quantile(p, estimate, None, None, len(data), size)
    scale = len(data) / whole
    return Quantile(
        p,
        estimate,
        float(ordered[math.floor(low * scale) - 1]),
        float(ordered[min(math.ceil(high * scale), len(data)) - 1]),
        len(data),
        size,
    )


def _at(ordered: _Values, p: float) -> float:
    """Between the two order statistics around (n - 1) p, as np.quantile() does."""
    place = (len(ordered) - 1) * p
    below = math.floor(place)
    return float(np.quantile(ordered[below : below + 2], place - below))
