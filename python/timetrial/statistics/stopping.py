"""When one launch has been measured enough.

Enough is: a steady state, and since it began at least `min_steps` steps, worth `min_effective` independent
ones, whose median has an interval narrower than `half_width`. Whoever looks at growing data until the
interval is narrow stops too early too often; the minima, and looking only when the data have grown by
`growth`, keep the interval honest (the measured coverage: docs/statistics.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from timetrial.statistics.quantiles import Quantile, quantile
from timetrial.statistics.steady import Steady, find_steady

StopReason = Literal["converged", "budget", "max_steps", "no_steady_state"]


@dataclass(frozen=True)
class StopRule:
    """What is enough for one launch. `half_width` is a fraction of the median, of its 95 % interval."""

    half_width: float  # of the interval of the median, a fraction
    min_steps: int = 100  # after warm-up
    min_effective: float = 50  # steps, counted as independent ones
    growth: float = 1.25  # of the steps between two looks

    def next_look(self, steps: int) -> int:
        """At how many steps to look again, after a look at `steps` (0: none yet)."""
        return max(self.min_steps, math.ceil(steps * self.growth))


STOP_RULES = {"quick": StopRule(0.03), "normal": StopRule(0.01), "rigorous": StopRule(0.005)}


@dataclass(frozen=True)
class Judged:
    """What a launch has shown so far. `median` is of the steps from `steady.first` on, None without any; its
    interval is None where too few steps carry none."""

    enough: bool
    steady: Steady
    median: Quantile | None


def judge(durations_ns: npt.ArrayLike, rule: StopRule) -> Judged:
    """Of the durations of all steps after the first one, in order. Call it at `rule.next_look` only."""
    durations = np.asarray(durations_ns, np.float64)
    steady = find_steady(durations)
    kept = durations[steady.first :]
    if len(kept) == 0:
        return Judged(False, steady, None)
    median = quantile(kept)
    width = median.half_width if median else None
    enough = (
        steady.accepted
        and median is not None
        and width is not None
        and median.n >= rule.min_steps
        and median.n_effective >= rule.min_effective
        and width <= rule.half_width
    )
    return Judged(enough, steady, median)


def stop_reason(judged: Judged, *, budget_spent: bool, steps_spent: bool) -> StopReason | None:
    """Why a launch ends after this look; None: go on. Without a steady state it never `converged`; a launch
    too short to tell whether there is one ends by its limit."""
    if judged.enough:
        return "converged"
    if not budget_spent and not steps_spent:
        return None
    if judged.steady.label is not None and not judged.steady.accepted:
        return "no_steady_state"
    return "budget" if budget_spent else "max_steps"
