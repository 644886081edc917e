"""From the launches of a pair to one number per challenger: ln(challenger / base) of the metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from timetrial.analysis.steps import Steps, steps_of_turns
from timetrial.statistics.trimmed import trimmed_location
from timetrial.statistics.verdict import Decision, Direction, Rule, decide

GATE = "median"  # of the statistics, the one that verdicts stand on
STATISTICS: dict[str, Callable[[npt.NDArray[np.float64]], float]] = {
    "median": lambda times: float(np.median(times)),
    "mean": lambda times: float(np.mean(times)),  # sees what medians hide: a stall now and then
    "p25": lambda times: float(np.quantile(times, 0.25)),
}


def turns_of(steps: Steps) -> list[npt.NDArray[np.float64]]:
    """Durations [ns] of the steps of each turn that count."""
    return [steps.duration_ns[own].astype(np.float64) for own in steps_of_turns(steps)]


def step_time_log_ratios(
    base: Sequence[npt.NDArray[np.float64]], challenger: Sequence[npt.NDArray[np.float64]]
) -> dict[str, float]:
    """By statistic: the trimmed mean over rounds of ln(challenger / base). ValueError: a time that is not
    positive."""
    found = {}
    for name, statistic in STATISTICS.items():
        rounds = [(statistic(b), statistic(c)) for b, c in zip(base, challenger, strict=True)]
        if not rounds or not all(math.isfinite(b) and math.isfinite(c) and min(b, c) > 0 for b, c in rounds):
            raise ValueError(f"step times that are not positive: {rounds[:3]}")
        found[name] = float(trimmed_location([math.log(c / b) for b, c in rounds]))
    return found


def judge(log_ratios: Sequence[float], rule: Rule, good: Direction) -> Decision | None:
    """The decision of the first planned look that makes one. None: more pairs are needed. A race that ends
    between looks has no decision: looking where no look was planned must not find anything."""
    for look in rule.looks:
        if len(log_ratios) >= look:
            decision = decide(log_ratios[:look], rule, good, last=look == rule.most_pairs)
            if decision is not None:
                return decision
    return None
