"""The trimmed mean with Yuen's interval: what a race estimates from its pairs.

A share of the values is cut off at either end, so a pair that something disturbed moves the estimate
little; the interval comes from the winsorized variance of all values, so what was cut still counts as
uncertainty (Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974; Wilcox,
"Introduction to Robust Estimation and Hypothesis Testing", 4th ed., section 4.3). Fewer than 4 values can
carry no interval here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

TRIM = 0.2  # the share of values that is cut off at either end
FEWEST = 4  # values that an interval needs


@dataclass(frozen=True)
class Trimmed:
    """Location, standard error and degrees of freedom of a trimmed mean. `error` 0: all values are equal."""

    location: float
    error: float
    df: int
    n: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """Two-sided."""
        half = float(special.stdtrit(self.df, (1 + confidence) / 2)) * self.error
        return self.location - half, self.location + half

    def p_value(self, null: float = 0.0) -> float:
        """Two-sided, that the location is `null`."""
        if self.error == 0:
            return 1.0 if self.location == null else 0.0
        return float(2 * special.stdtr(self.df, -abs(self.location - null) / self.error))


def trimmed_location(values: npt.ArrayLike, trim: float = TRIM) -> npt.NDArray[np.float64]:
    """The trimmed mean along the last axis, of any number of values: what a pair makes of its rounds.

    A median would decide between two levels by majority, and pairs that all take one of two values look
    exact to the interval over them; a mean would follow every disturbed round.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)
    cut = int(trim * ordered.shape[-1])
    return np.asarray(np.mean(ordered[..., cut : ordered.shape[-1] - cut], axis=-1), np.float64)


def trimmed_mean(values: Sequence[float], trim: float = TRIM) -> Trimmed:
    """The trimmed mean of at least FEWEST finite values, with its standard error. ValueError otherwise."""
    data = np.sort(np.asarray(values, np.float64))
    n = len(data)
    if n < FEWEST or not np.all(np.isfinite(data)):
        raise ValueError(f"expected {FEWEST} or more finite values, got {list(values)!r}")
    cut = int(trim * n)
    kept = n - 2 * cut
    winsorized = np.clip(data, data[cut], data[n - 1 - cut])
    error = float(np.std(winsorized, ddof=1)) * math.sqrt((n - 1) / (kept * (kept - 1)))
    return Trimmed(float(trimmed_location(data, trim)), error, kept - 1, n)
