"""After how many steps the time of a step repeats: gradient accumulation, a log or a collection of garbage
every so many steps, bursts of a loader.

A turn of a race spans whole multiples of it. Else how many of the long steps fall into the turns would depend
on where these begin, in the same way in every launch.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

FEWEST = 12  # steps that anything is said of
MOST_PERIOD = 128
MOST_STEPS = 4096  # that are looked at: of quicker steps a turn holds thousands
CHANCE = 1e-5  # that a series without a period seems to have one of those that are tried
LEAST_SQUARES = 1e-12  # that phases which repeat exactly leave
BURST = 2.5  # times the median: a step that does more than the others
FEWEST_BURSTS = 2  # one is a stall of the machine, or a late compiler
BURST_SHARE = 0.02  # of the time, that bursts take beyond what a median step does
NEIGHBORS = (-2, -1, 1, 2)  # steps whose median is taken for the level of the machine


def span_of(times: npt.ArrayLike) -> int:
    """The number of steps that a time per step has to be taken over, by the times of consecutive steps: the
    period, or the mean distance of bursts that come without one; 1 for steps that are alike."""
    series = np.asarray(times, np.float64)[-MOST_STEPS:]
    if len(series) < FEWEST or not np.all(series > 0):
        return 1
    return period_of(series) or _distance_of_bursts(series)


def period_of(series: npt.NDArray[np.float64]) -> int | None:
    """The period that explains the series best, at most half of its length. None: there is none.

    An analysis of variance between the phases of each period, of ln(time) against the median of its
    neighbors, so that a machine whose speed changes level makes no period; with Bonferroni's bound over the
    periods. Of several that are significant, multiples of the true one among them, the one with the least
    Bayesian information criterion (Schwarz, "Estimating the dimension of a model", 1978).
    """
    logs = np.log(series)
    steps, longest = len(logs), min(MOST_PERIOD, len(logs) // 2)
    near = [np.clip(np.arange(steps) + distance, 0, steps - 1) for distance in NEIGHBORS]
    own = logs - np.median(logs[np.stack(near)], axis=0)
    found = {}
    for period in range(2, longest + 1):
        phases = np.arange(steps) % period
        sizes = np.bincount(phases)
        means = np.bincount(phases, own) / sizes
        within = float(np.sum((own - means[phases]) ** 2)) + LEAST_SQUARES
        between = float(np.sum(sizes * (means - own.mean()) ** 2))
        ratio = between / within * (steps - period) / (period - 1)
        if special.fdtrc(period - 1, steps - period, ratio) * (longest - 1) <= CHANCE:
            found[period] = steps * math.log(within / steps) + period * math.log(steps)
    return min(found, key=found.__getitem__, default=None)


def _distance_of_bursts(series: npt.NDArray[np.float64]) -> int:
    typical = float(np.median(series))
    bursts = series[series > BURST * typical]
    if len(bursts) < FEWEST_BURSTS or np.sum(bursts - typical) < BURST_SHARE * np.sum(series):
        return 1
    return math.ceil(len(series) / len(bursts))


def common_span(spans: list[int], most: int) -> int:
    """The shortest number of steps, at most `most`, that is a whole multiple of each span; else the longest
    span that is no more than `most`; 1: none is."""
    whole = math.lcm(*spans)
    return whole if whole <= most else max((span for span in spans if span <= most), default=1)
