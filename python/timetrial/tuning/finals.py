"""Who is looked at again: those that one look cannot tell from the fastest.

A look is a fresh launch, and fresh launches of one contender differ by about 2 %: of many candidates, the one
that looks fastest is often one that was lucky. So the fastest ride again, together, and from heat to heat
fewer of them (successive halving: Jamieson and Talwalkar, AISTATS 2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from timetrial.tuning.tuned import LOOK_SD, Trial, ranked

MOST = 6  # of the first heat of finals
MOST_LOOKS = 5  # at one candidate
_PRIOR_LOOKS = 4  # that LOOK_SD counts for, beside those that were taken
_APART = 2.0  # standard errors of a difference


def finalists(trials: Sequence[Trial]) -> list[Trial]:
    """Of all but the base; none: it is decided who is raced."""
    near = ranked(trials)
    if not near or len(near[0].looks) >= MOST_LOOKS:
        return []
    leader, sd = near[0], look_sd(trials)
    # Whoever is slower than the base is not worth a look.
    best = min(leader.log_ratio, 0.0)
    near = [one for one in near if one.log_ratio - best <= _APART * sd * _error(one, leader)]
    near = near[: max(2, MOST >> (len(leader.looks) - 1))]
    return near if len(near) > 1 else []


def look_sd(trials: Sequence[Trial]) -> float:
    """The standard deviation of a look, pooled over candidates that have several."""
    squares, degrees = _PRIOR_LOOKS * LOOK_SD**2, _PRIOR_LOOKS
    for one in trials:
        squares += sum((look - one.log_ratio) ** 2 for look in one.looks)
        degrees += max(0, len(one.looks) - 1)
    return math.sqrt(squares / degrees)


def _error(one: Trial, other: Trial) -> float:
    return math.sqrt(1 / len(one.looks) + 1 / len(other.looks))
