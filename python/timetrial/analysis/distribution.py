"""How the steps of a case scatter, over all of its launches.

Each number is taken from one launch and then estimated over launches, like the step time itself: steps of
several launches are never thrown together, because launches differ by more than their steps tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from timetrial.analysis.step_times import PERCENTILES, StepTimes
from timetrial.statistics.dispersion import two_levels
from timetrial.statistics.intervals import Estimate, positive_location


@dataclass(frozen=True)
class Distribution:
    """Of the steady steps. None: the launches cannot carry it."""

    steps: int  # how many count
    effective: float  # independent samples that these steps are worth
    mean_ns: Estimate | None  # over launches
    percentiles_ns: dict[int, Estimate | None]  # by percent; of launches of which each carries it
    # Standard deviation over mean of the steps of a launch; root mean square over launches.
    spread_within: float
    spread_within_robust: float  # the same from median absolute deviations: outliers do not move it
    outliers_mild: int  # steps more than 1.5 interquartile ranges outside the quartiles of their launch
    outliers_severe: int  # more than 3
    spread_between: float | None  # standard deviation of ln(step time) of launches; None for one launch
    levels_apart: float | None  # how far apart, as a fraction, two groups of launches are; None: one group

    @classmethod
    def of(cls, launches: Sequence[StepTimes], step_times_ns: Sequence[float]) -> Distribution | None:
        """`step_times_ns`: of each launch. None without launches."""
        if not launches:
            return None
        return cls(
            steps=sum(one.median.n for one in launches),
            effective=sum(one.median.n_effective for one in launches),
            mean_ns=positive_location([one.mean_ns for one in launches]),
            percentiles_ns={percent: _percentile(launches, percent) for percent in PERCENTILES},
            spread_within=_root_mean_square([one.spread for one in launches]),
            spread_within_robust=_root_mean_square([one.robust_spread for one in launches]),
            outliers_mild=sum(one.outliers.mild for one in launches),
            outliers_severe=sum(one.outliers.severe for one in launches),
            spread_between=float(np.std(np.log(step_times_ns), ddof=1)) if len(launches) > 1 else None,
            levels_apart=two_levels(step_times_ns),
        )


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


def _percentile(launches: Sequence[StepTimes], percent: int) -> Estimate | None:
    known = [one.percentiles.get(percent) for one in launches]
    estimates = [one.estimate for one in known if one is not None]
    return positive_location(estimates) if len(estimates) == len(launches) else None
