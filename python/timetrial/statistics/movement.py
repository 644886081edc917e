"""How far a number moved between two measurements that were not made together.

Both are estimates of independent launches, on logarithms: the difference has the squared error e1^2 + e2^2
and Welch's degrees of freedom ("The generalization of 'Student's' problem when several different population
variances are involved", Biometrika 34, 1947). That says what scatter of launches explains, and nothing of
what lies between two days: the level of a machine, its other programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from timetrial.statistics.intervals import CONFIDENCE, Estimate
from timetrial.statistics.multiplicity import holm


@dataclass(frozen=True)
class Movement:
    """New over old minus 1, with its 95 % interval, as fractions."""

    estimate: float  # later over earlier, minus 1
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    apart: bool  # neither interval reaches the other
    p_value: float  # two-sided, that nothing moved


def movement(old: Estimate, new: Estimate) -> Movement | None:
    """Of positive quantities. None: one of them has no interval."""
    errors = _error(old), _error(new)
    if errors[0] is None or errors[1] is None or old.df is None or new.df is None:
        return None
    assert None not in (old.low, old.high, new.low, new.high)
    moved = math.log(new.estimate / old.estimate)
    variance = errors[0] ** 2 + errors[1] ** 2
    apart = bool(new.low > old.high or new.high < old.low)  # type: ignore[operator]
    if variance == 0:
        exactly = math.expm1(moved)
        return Movement(exactly, exactly, exactly, apart, 1.0 if moved == 0 else 0.0)
    df = variance**2 / (errors[0] ** 4 / old.df + errors[1] ** 4 / new.df)
    half = float(special.stdtrit(df, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    p_value = float(2 * special.stdtr(df, -abs(moved) / math.sqrt(variance)))
    return Movement(
        math.expm1(moved), math.expm1(moved - half), math.expm1(moved + half), apart, min(1.0, p_value)
    )


def beyond_chance(movements: Sequence[Movement | None]) -> list[bool]:
    """Which moved: neither interval reaches the other, and that any of so many rows would do so by chance
    has at most 5 % (Holm)."""
    known = [one.p_value for one in movements if one is not None]
    corrected = iter(holm(known))
    return [one is not None and (next(corrected) <= 1 - CONFIDENCE) and one.apart for one in movements]


def _error(one: Estimate) -> float | None:
    """The standard error on logarithms that its interval was made of."""
    if one.low is None or one.high is None or one.df is None or one.low <= 0:
        return None
    half = (math.log(one.high) - math.log(one.low)) / 2
    return half / float(special.stdtrit(one.df, (1 + CONFIDENCE) / 2))
