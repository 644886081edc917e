"""How values scatter, and what about them makes one number misleading: outliers, ticks, two levels.

Nothing here drops anything. Outliers are counted by Tukey's fences, 1.5 and 3 interquartile ranges outside
the quartiles ("Exploratory Data Analysis", 1977).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FEWEST_FOR_TICKS = 10
COARSE = 0.01  # of a step: a tick that long hides what a race looks for
FEWEST_FOR_LEVELS = 8
FEWEST_OF_A_LEVEL = 2
LEVELS_APART = 0.01


@dataclass(frozen=True)
class Outliers:
    """How many values lie outside the fences; `severe` ones are not counted as `mild` too."""

    low_severe: int
    low_mild: int
    high_mild: int
    high_severe: int

    @property
    def mild(self) -> int:
        """On either side."""
        return self.low_mild + self.high_mild

    @property
    def severe(self) -> int:
        """On either side."""
        return self.low_severe + self.high_severe


def coefficient_of_variation(values: npt.ArrayLike) -> float:
    """Standard deviation (n - 1) over mean; in two passes, because a difference of sums of squares cancels.
    0 for one value."""
    data = np.asarray(values, np.float64)
    return float(np.std(data, ddof=1) / np.mean(data)) if len(data) > 1 else 0.0


def robust_variation(values: npt.ArrayLike) -> float:
    """1.4826 x median absolute deviation over median: for normal values the same, deaf to outliers."""
    data = np.asarray(values, np.float64)
    center = np.median(data)
    return float(1.4826 * np.median(np.abs(data - center)) / center)


def fences(values: npt.ArrayLike, times: float = 1.5) -> tuple[float, float]:
    """So many interquartile ranges below the lower and above the upper quartile."""
    low, high = np.quantile(np.asarray(values, np.float64), [0.25, 0.75])
    return float(low - times * (high - low)), float(high + times * (high - low))


def outliers(values: npt.ArrayLike) -> Outliers:
    """Counts of what lies outside the fences."""
    data = np.asarray(values, np.float64)
    (low, high), (lowest, highest) = fences(data), fences(data, 3.0)
    below, above = int(np.sum(data < lowest)), int(np.sum(data > highest))
    return Outliers(below, int(np.sum(data < low)) - below, int(np.sum(data > high)) - above, above)


def coarse_tick_ns(durations_ns: npt.NDArray[np.integer]) -> int | None:
    """The tick of a clock too coarse for these steps, by which all their durations can be divided: medians
    then cannot tell times apart that lie between two ticks. None: fine enough, or too few steps to say."""
    if len(durations_ns) < FEWEST_FOR_TICKS:
        return None
    tick = int(np.gcd.reduce(durations_ns))
    return tick if tick > COARSE * float(np.median(durations_ns)) else None


def two_levels(values: Sequence[float]) -> float | None:
    """How far apart (a fraction) two groups of launches are that nothing lies between; None: one group, or
    fewer than 8 launches.

    The groups are those of least squares, of at least two launches each. The gap between them must be so
    many standard deviations of the launches within groups that normal launches show it in 1 % at most; the
    limit 3.4 + 120 / n^2 was found by simulation.
    """
    logs = np.sort(np.log(np.asarray(values, np.float64)))
    n = len(logs)
    if n < FEWEST_FOR_LEVELS:
        return None
    cuts = range(FEWEST_OF_A_LEVEL, n - FEWEST_OF_A_LEVEL + 1)
    squares = [cut * np.var(logs[:cut]) + (n - cut) * np.var(logs[cut:]) for cut in cuts]
    cut = cuts[int(np.argmin(squares))]
    within = math.sqrt(float(min(squares)) / (n - 2))
    apart = float(np.mean(logs[cut:]) - np.mean(logs[:cut]))
    gap = float(logs[cut] - logs[cut - 1])
    return math.expm1(apart) if apart >= LEVELS_APART and gap > (3.4 + 120 / n**2) * within else None
