"""A line through values at known sizes, value = fixed + each x size, with intervals.

Weighted least squares with Student's t: N. R. Draper and H. Smith, "Applied Regression Analysis", 3rd edition
(Wiley, 1998), sections 1.4 (both parts), 9.2 (weights) and 3.2 (the size that reaches a value: where the
limits of prediction do, which is E. C. Fieller's, "Some problems in interval estimation", Journal of the
Royal Statistical Society B 16, 1954). One value for each size goes in. So all that puts a size beside the
line, the scatter of launches and an allocator's rounding alike, is in the residuals, of which the intervals
are made; values of one size more would only seem to know better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

FEWEST_SIZES = 3  # two points always lie on a line
CONFIDENCE = 0.95
_FARTHEST = 2.0**60  # no size is larger


@dataclass(frozen=True)
class Part:
    """A number with its interval."""

    estimate: float  # in the unit of what was fitted
    low: float  # lower end of the interval
    high: float  # upper end of the interval

    def holds(self, value: float) -> bool:
        """Whether the interval has it."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Line:
    """`worst`: the largest relative distance of a value from the line. Where it is large, values do not grow
    in a straight line, and the two parts say little."""

    fixed: Part  # at size 0
    each: Part  # of one more
    worst: float
    is_relative: bool  # values scatter by a share of themselves; otherwise all by the same
    center: float  # mean size, by weight
    weight: float  # sum of weights
    spread: float  # sum of squares of sizes around `center`, by weight
    scatter: float  # standard deviation of a value of weight 1
    t: float  # quantile

    def at(self, size: float) -> Part:
        """What another value at this size will be."""
        value = self.fixed.estimate + self.each.estimate * size
        own = value**2 if self.is_relative else 1.0
        mean = 1 / self.weight + (size - self.center) ** 2 / self.spread
        half = self.t * self.scatter * math.sqrt(own + mean)
        return Part(value, value - half, value + half)

    def reaches(self, value: float) -> Part | None:
        """The size at which values come to `value`; above 0 each. None: they were not shown to grow."""
        if self.each.low <= 0:
            return None
        size = (value - self.fixed.estimate) / self.each.estimate
        low = _crossing(lambda at: self.at(at).high - value)
        return Part(max(0.0, size), low, max(low, _crossing(lambda at: self.at(at).low - value)))


def fit_line(
    sizes: Sequence[float], values: Sequence[float], *, relative: bool = False, confidence: float = CONFIDENCE
) -> Line:
    """Through one value for each size. `relative`: they scatter by a share of themselves, as times do; then
    short ones count as much as long ones. ValueError: fewer than FEWEST_SIZES different sizes, or a relative
    value that is not above 0."""
    x, y = np.asarray(sizes, np.float64), np.asarray(values, np.float64)
    if len(set(x.tolist())) < FEWEST_SIZES or len(x) != len(y):
        raise ValueError(f"{len(set(x.tolist()))} sizes, {len(y)} values: expected {FEWEST_SIZES} at least")
    if relative and (y <= 0).any():
        raise ValueError("values that scatter by a share of themselves must be above 0")
    weights = 1 / y**2 if relative else np.ones(len(y))
    weight = float(weights.sum())
    center = float((weights * x).sum()) / weight
    spread = float((weights * (x - center) ** 2).sum())
    each = float((weights * (x - center) * y).sum()) / spread
    fixed = float((weights * y).sum()) / weight - each * center
    fitted = fixed + each * x
    scatter = math.sqrt(float((weights * (y - fitted) ** 2).sum()) / (len(y) - 2))
    t = float(stats.t.ppf((1 + confidence) / 2, len(y) - 2))
    half_fixed = t * scatter * math.sqrt(1 / weight + center**2 / spread)
    half_each = t * scatter / math.sqrt(spread)
    return Line(
        fixed=Part(fixed, fixed - half_fixed, fixed + half_fixed),
        each=Part(each, each - half_each, each + half_each),
        worst=float(np.max(np.abs(fitted - y) / np.maximum(np.abs(y), np.finfo(float).tiny))),
        is_relative=relative,
        center=center,
        weight=weight,
        spread=spread,
        scatter=scatter,
        t=t,
    )


def _crossing(above: Callable[[float], float]) -> float:
    """Where a function that grows in the end comes to 0; 0 where it is above that from the beginning."""
    if above(0.0) >= 0:
        return 0.0
    far = 1.0
    while above(far) < 0:
        if far > _FARTHEST:
            return math.inf
        far *= 2
    return float(optimize.brentq(above, 0.0, far, xtol=1e-6))
