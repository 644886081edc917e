"""Intervals over launches. One value per launch goes in; launches are independent, steps are not.

With n >= 6 values: the median, with the order-statistic interval (ranks.py), which assumes no distribution.

With 2 to 5 values that interval cannot reach 95 % (the whole range of 5 values covers the median with
1 - 2 / 2^5 = 93.75 %). Then: the geometric mean, with Student's t interval on the logarithms, which supposes
that launches scatter by factors that are about normal.

One value has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from timetrial.analysis.ranks import quantile_ranks

CONFIDENCE = 0.95
Method = Literal["order statistics", "t on logarithms", "t", "single value"]


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval; `low` and `high` are None where n cannot carry one."""

    estimate: float
    low: float | None
    high: float | None
    n: int
    method: Method

    @property
    def half_width(self) -> float | None:
        """Half of the interval, as a fraction of the estimate."""
        if self.low is None or self.high is None or self.estimate == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.estimate)

    def in_words(self) -> str:
        """What the interval is, for people."""
        if self.method == "single value":
            return "one launch: no interval"
        name = {
            "order statistics": "median, 95 % order-statistic interval",
            "t on logarithms": "geometric mean, 95 % t interval on logarithms (order statistics need 6)",
            "t": "mean, 95 % t interval",
        }[self.method]
        return f"{name}, over {self.n} launches"


def positive_location(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """The typical value of positive quantities (times, bytes, ratios), as the top of this file says."""
    if not values:
        return None
    data = np.sort(np.asarray(values, np.float64))
    if not np.all(np.isfinite(data)) or data[0] <= 0:
        raise ValueError(f"expected positive, finite values, got {values!r}")
    n = len(data)
    if n == 1:
        return Estimate(float(data[0]), None, None, 1, "single value")
    low, high = quantile_ranks(n, 0.5, confidence)
    if low is not None and high is not None:
        return Estimate(
            float(np.median(data)), float(data[low - 1]), float(data[high - 1]), n, "order statistics"
        )
    logs = np.log(data)
    center, half = float(np.mean(logs)), _t_half_width(logs, confidence)
    return Estimate(math.exp(center), math.exp(center - half), math.exp(center + half), n, "t on logarithms")


def paired_ratio(
    numerator: dict[int, float], denominator: dict[int, float], confidence: float = CONFIDENCE
) -> Estimate | None:
    """Ratio of two cases through their blocks: only launches of the same block are divided, so that slow
    drifts of the machine cancel. Keys are block numbers; a block that one of them lacks is left out."""
    blocks = sorted(numerator.keys() & denominator.keys())
    return positive_location([numerator[block] / denominator[block] for block in blocks], confidence)


def bounded_mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """Mean of fractions (accuracy) with Student's t interval, kept inside 0 to 1."""
    if not values:
        return None
    data = np.asarray(values, np.float64)
    center = float(np.mean(data))
    if len(data) == 1:
        return Estimate(center, None, None, 1, "single value")
    half = _t_half_width(data, confidence)
    return Estimate(center, max(0.0, center - half), min(1.0, center + half), len(data), "t")


def _t_half_width(data: np.ndarray[tuple[int, ...], np.dtype[np.float64]], confidence: float) -> float:
    n = len(data)
    return float(stats.t.ppf((1 + confidence) / 2, n - 1) * np.std(data, ddof=1) / math.sqrt(n))
