"""Intervals over launches. One value per launch goes in; launches are independent, steps are not.

Positive quantities (times, bytes, ratios) are estimated on logarithms, because launches scatter by factors:
the trimmed mean with Yuen's interval from six launches, the geometric mean with Student's t below. A row of
few launches may borrow degrees of freedom from rows beside it (scatter.py). One value has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from timetrial.statistics.scatter import TRIMMED_FROM, Scatter, interval_of, scatter_of

CONFIDENCE = 0.95
Method = Literal["trimmed mean", "geometric mean", "seeds and images", "single value"]


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval; `low` and `high` are None where n cannot carry one."""

    estimate: float  # in the unit of what is estimated
    low: float | None  # lower end of the interval; None: there is none
    high: float | None  # upper end of the interval
    n: int  # launches, or what else is counted
    method: Method  # by which the interval was made
    df: int | None = None  # degrees of freedom of the interval
    borrowed: int = 0  # of them, from other rows

    @property
    def half_width(self) -> float | None:
        """Half of the interval, as a fraction of the estimate."""
        if self.low is None or self.high is None or self.estimate == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.estimate)

    def scaled(self, factor: float) -> Estimate:
        """The same of a quantity that is `factor` times as large, with the same half width."""
        low, high = (None if one is None else one * factor for one in (self.low, self.high))
        return replace(self, estimate=self.estimate * factor, low=low, high=high)

    def in_words(self) -> str:
        """What the interval is, for people."""
        if self.method == "single value":
            return "one launch: no interval"
        if self.method == "seeds and images":
            seeds = "one seed: what other seeds do is not in it" if self.n == 1 else f"{self.n} seeds"
            return f"mean, 95 % score interval for new images and seeds, over {seeds}"
        name = {
            "trimmed mean": "20 % trimmed mean, Yuen's 95 % interval",
            "geometric mean": "geometric mean, 95 % t interval",
        }[self.method]
        lent = f", {self.borrowed} of them from the scatter of other rows" if self.borrowed else ""
        return f"{name}, on logarithms, over {self.n} launches; degrees of freedom: {self.df}{lent}"


def positive_location(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """The typical value of positive quantities (times, bytes, ratios), as the top of this file says; of a row
    that stands alone."""
    return positive_locations([values], confidence)[0]


def positive_locations(
    rows: Sequence[Sequence[float]], confidence: float = CONFIDENCE
) -> list[Estimate | None]:
    """Of rows that may lend one another degrees of freedom (scatter.py): those of equal threads. None for a
    row without values. ValueError for values that are not positive and finite."""
    logs = [_logarithms(row) for row in rows]
    scatters = [scatter_of(row) if len(row) > 1 else None for row in logs]
    found: list[Estimate | None] = []
    for number, (row, own) in enumerate(zip(rows, scatters, strict=True)):
        if own is not None:
            others = [one for place, one in enumerate(scatters) if one is not None and place != number]
            found.append(_estimate(own, others, confidence))
        else:
            found.append(Estimate(float(row[0]), None, None, 1, "single value") if row else None)
    return found


def _estimate(own: Scatter, beside: Sequence[Scatter], confidence: float) -> Estimate:
    found = interval_of(own, beside, confidence)
    return Estimate(
        math.exp(own.location),
        math.exp(found.low),
        math.exp(found.high),
        own.n,
        "trimmed mean" if own.n >= TRIMMED_FROM else "geometric mean",
        found.df,
        found.borrowed,
    )


def _logarithms(values: Sequence[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    data = np.asarray(values, np.float64)
    if not np.all(np.isfinite(data)) or np.any(data <= 0):
        raise ValueError(f"expected positive, finite values, got {list(values)!r}")
    return np.asarray(np.log(data), np.float64)


def paired_ratios(numerator: dict[int, float], denominator: dict[int, float]) -> list[float]:
    """Ratios of two cases through their blocks: only launches of the same block are divided, so that slow
    drifts of the machine cancel. Keys are block numbers; a block that one of them lacks is left out."""
    return [numerator[block] / denominator[block] for block in sorted(numerator.keys() & denominator.keys())]
