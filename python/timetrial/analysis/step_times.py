"""The steps of one launch that count for its step time, and what they say about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from timetrial.analysis.steps import Steps, mean_per_step_ns, steady_mask, whole_over_counting
from timetrial.records.model import Purpose
from timetrial.statistics.dispersion import Outliers, coefficient_of_variation, outliers, robust_variation
from timetrial.statistics.quantiles import Quantile, quantiles
from timetrial.statistics.steady import Steady

PERCENTILES = (5, 25, 75, 95, 99)


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Of one launch, at least one step. What is asked for seldom is computed when it is."""

    durations_ns: npt.NDArray[np.int64]
    counting: npt.NDArray[np.bool_]  # which of all steps of the launch these are
    steady: Steady | None  # None: a launch that warmed up for a given time
    wall_per_step_ns: float  # the step time of the launch: all time of the steady part over its steps
    whole_over_counting: float | None = None  # of turns: with the first steps, which do not count

    @cached_property
    def median(self) -> Quantile:
        """The median step, with its interval on the effective sample size."""
        found = self._quantiles[50]
        assert found is not None  # a median can always be carried
        return found

    @cached_property
    def _quantiles(self) -> dict[int, Quantile | None]:
        percents = (50, *PERCENTILES)
        found = quantiles(self.durations_ns, [percent / 100 for percent in percents])
        return dict(zip(percents, found, strict=True))

    @cached_property
    def mean_ns(self) -> float:
        """Of the steps that count; the time that they took together, over their number."""
        return float(np.mean(self.durations_ns))

    @cached_property
    def spread(self) -> float:
        """Standard deviation over mean; 0 for one step."""
        return coefficient_of_variation(self.durations_ns)

    @cached_property
    def robust_spread(self) -> float:
        """What the spread would be without outliers: from the median absolute deviation."""
        return robust_variation(self.durations_ns)

    @cached_property
    def outliers(self) -> Outliers:
        """Counted, and kept."""
        return outliers(self.durations_ns)

    @cached_property
    def percentiles(self) -> dict[int, Quantile]:
        """Those of PERCENTILES that the sample carries."""
        return {percent: one for percent in PERCENTILES if (one := self._quantiles[percent]) is not None}


def step_times_of(steps: Steps, purpose: Purpose) -> StepTimes | None:
    """None where no step counts."""
    mask, steady = steady_mask(steps, purpose)
    if not mask.any():
        return None
    whole = whole_over_counting(steps, mask)
    return StepTimes(steps.duration_ns[mask], mask, steady, mean_per_step_ns(steps, mask), whole)
