"""Whether something grows from step to step, and whether steps are others from one call on.

Slopes are Theil and Sen's. Mann and Kendall's test ("Nonparametric tests against trend", Econometrica 13,
1945) says of each launch that its slope is no chance, and Fisher's of all together. An allocator, a cache or
a boosted processor grows at first and then stays: so growth must go on in the second half of a series, and be
alike in all launches. tests/analysis/test_growth.py simulates how often noise and drift are called growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FEWEST = 8  # values of a series
SURE = 0.001  # the p-value of all series together
ALIKE = 0.5  # of the slope, that each series has at least
AT_FIRST, STILL = 0.2, 0.5  # of the slope, that the first half has, and of both, that the second one has
# Calls that may take any time, because compilers work in them. A later change of three times is named. One of
# ten times at once, to steps that take nothing or whose loss stands still, is no compiler's work.
WARMING = 10
NEIGHBORS = 5  # steps on either side of a change, which must show most of it
CHANGE, NOTHING, NOTHING_NS = 3.0, 10.0, 5_000  # looking for input that is not there takes 100 to 500 ns
PURE = 0.9  # of the steps on either side, that are on their side of the middle
TAIL = 0.05  # of all steps, that show where it ends


@dataclass(frozen=True)
class Trend:
    """The line that is typical of what the launches show."""

    per_step: float  # in the unit of the values
    first: float  # value of the line where the series begins
    last: float  # and where it ends
    step: int  # number of the last one
    grows: bool  # surely, to its end, in every launch, and by as much as matters


def trend(launches: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> Trend | None:
    """`launches`: of each the numbers of steps, and the values there. None: one has too few to tell."""
    series = [np.array(one, np.float64) for one in launches]
    if not series or min(one.shape[1] for one in series) < FEWEST:
        return None
    parts = [(one, *np.array_split(one, 2, axis=1)) for one in series]
    slopes, *halves = np.array([[_slope(*part) for part in own] for own in parts]).T
    per_step, at_first, later = (float(np.median(one)) for one in (slopes, *halves))
    goes_on = at_first >= AT_FIRST * per_step and later >= STILL * max(per_step, at_first)
    grows = per_step > 0 and min(slopes) >= ALIKE * per_step and goes_on and _chance(series) <= SURE
    steps, values = series[int(np.argsort(slopes)[len(slopes) // 2])]
    first = float(np.median(values) - per_step * (np.median(steps) - steps[0]))
    return Trend(per_step, first, first + per_step * float(steps[-1] - steps[0]), int(steps[-1]), grows)


def _slope(steps: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float:
    left, right = np.triu_indices(len(steps), 1)
    return float(np.median((values[right] - values[left]) / (steps[right] - steps[left])))


def _chance(series: Sequence[npt.NDArray[np.float64]]) -> float:
    from scipy import stats

    chances = [stats.kendalltau(*one, alternative="greater").pvalue for one in series]
    return float(stats.combine_pvalues(np.clip(chances, 1e-300, 1.0)).pvalue)


@dataclass(frozen=True)
class Change:
    """Steps from number `call` on, counted from 1, take another time than those before, to the last one."""

    call: int  # number of the first of them
    before_ns: float  # median step before
    after_ns: float  # median step from there on


def lasting_change(durations_ns: npt.NDArray[np.int64]) -> Change | None:
    """Of all steps of a launch in order, if there is one at a single call behind the first ones."""
    count = len(durations_ns)
    if count < WARMING + 2 * NEIGHBORS:
        return None
    times = np.maximum(durations_ns, 1)
    head, tail = (
        np.median(times[NEIGHBORS : WARMING + 1]),
        np.median(times[-max(NEIGHBORS, int(TAIL * count)) :]),
    )
    is_before = (times > np.sqrt(head * tail)) == (head > tail)
    at = int(np.argmax(np.cumsum(np.where(is_before, 1, -1)))) + 1
    if not WARMING < at <= count - NEIGHBORS or min(is_before[:at].mean(), 1 - is_before[at:].mean()) < PURE:
        return None
    whole = np.log(np.median(times[:at]) / np.median(times[at:]))
    at_once = np.log(np.median(times[at - NEIGHBORS : at]) / np.median(times[at : at + NEIGHBORS]))
    if abs(whole) < np.log(CHANGE) or at_once / whole < 2 / 3:
        return None
    return Change(at + 1, float(np.median(times[:at])), float(np.median(times[at:])))


def common_change(found: Sequence[Change | None]) -> Change | None:
    """What is at the same call in every launch, and in two at least: no machine does that."""
    seen = [one for one in found if one is not None]
    calls = [one.call for one in seen]
    return seen[0] if len(seen) == len(found) >= 2 and max(calls) <= min(calls) + 2 else None


def does_nothing(change: Change, first: Sequence[float], last: Sequence[float]) -> bool:
    """Whether no work is left behind a change, by its times and losses of the first and last steps."""
    stands_still = len(set(first)) > 1 and last == [last[0]] * len(last)
    is_far = change.before_ns >= NOTHING * change.after_ns
    return is_far and (change.after_ns <= NOTHING_NS < change.before_ns or stands_still)
