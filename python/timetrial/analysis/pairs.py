"""From the launches of a pair to one number per challenger: ln(challenger / base) of the metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from timetrial.analysis.steps import Steps, steps_of_turns
from timetrial.records.model import LaunchRecord
from timetrial.records.race import Gate
from timetrial.statistics.totals import log_ratio
from timetrial.statistics.trimmed import trimmed_location
from timetrial.statistics.verdict import Decision, Direction, Rule, decide

GATE: Gate = "mean"  # of the statistics, the one that verdicts stand on: time per step over whole turns
OTHERS: dict[str, Callable[[npt.NDArray[np.float64]], float]] = {  # of a turn; they leave bursts out
    "median": lambda times: float(np.median(times)),
    "p25": lambda times: float(np.quantile(times, 0.25)),
}


def turns_of(steps: Steps) -> list[npt.NDArray[np.float64]]:
    """Durations [ns] of the steps of each turn that count."""
    return [steps.duration_ns[own].astype(np.float64) for own in steps_of_turns(steps)]


def disturbed_turns(record: LaunchRecord, turns: int) -> list[bool]:
    """Of each of its turns, whether others disturbed it; of those that nobody saw to the end, no."""
    seen = [turn.disturbed for turn in record.turns[:turns]]
    return [*seen, *[False] * (turns - len(seen))]


def step_time_log_ratios(
    base: Sequence[npt.NDArray[np.float64]], challenger: Sequence[npt.NDArray[np.float64]]
) -> dict[str, float]:
    """By statistic: GATE, the ratio of what all turns of both took; of OTHERS the trimmed mean over rounds of
    ln(challenger / base). ValueError: a time that is not positive."""
    pairs = list(zip(base, challenger, strict=False))  # by itself, a side may have ridden more rounds
    found: dict[str, float] = {GATE: log_ratio(*(_positive(per_step(side)) for side in (base, challenger)))}
    for name, statistic in OTHERS.items():
        rounds = [_positive([statistic(b), statistic(c)]) for b, c in pairs]
        found[name] = float(trimmed_location([math.log(c / b) for b, c in rounds]))
    return found


def per_step(turns: Sequence[npt.NDArray[np.float64]]) -> list[float]:
    """The time per step of each turn [ns]."""
    return [float(np.mean(turn)) for turn in turns]


def _positive(times: list[float]) -> list[float]:
    if not times or not all(math.isfinite(one) and one > 0 for one in times):
        raise ValueError(f"step times that are not positive: {times[:3]}")
    return times


def judge(log_ratios: Sequence[float], rule: Rule, good: Direction) -> Decision | None:
    """The decision of the first planned look that makes one. None: more pairs are needed. A race that ends
    between looks has no decision: looking where no look was planned must not find anything."""
    for look in rule.looks:
        if len(log_ratios) >= look:
            decision = decide(log_ratios[:look], rule, good, last=look == rule.most_pairs)
            if decision is not None:
                return decision
    return None
