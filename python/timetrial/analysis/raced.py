"""How each metric of a race comes from its launches: a value per launch, ln(challenger / base) per pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt

from timetrial.analysis.pairs import GATE, disturbed_turns, per_step, step_time_log_ratios, turns_of
from timetrial.analysis.steps import Steps
from timetrial.heats.lengths import REPEATED_SHARE
from timetrial.records.metric import Metric
from timetrial.records.model import LaunchRecord
from timetrial.statistics.totals import scatter_of_totals

NO_SAMPLES = (
    "how many samples a step has is not known: give batch_size=64, or the step an attribute `samples`"
)


@dataclass(frozen=True)
class Ride:
    """One launch of a side. `steps` reads its samples. `batch_size`: of its case; None: not known."""

    record: LaunchRecord
    steps: Callable[[], Steps]
    batch_size: int | None

    @property
    def samples(self) -> int | None:
        """Of one step; None: not known."""
        return self.record.samples_per_step(self.batch_size)


@dataclass(frozen=True)
class Raced:
    """`value`: of one launch, in the metric's unit; None: it has none. `log_ratios`: of base and challenger,
    by statistic; ValueError says why there is none."""

    value: Callable[[Ride], float | None]
    log_ratios: Callable[[Ride, Ride], dict[str, float]]


Turns = list[npt.NDArray[np.float64]]  # durations [ns] of the steps that count


def _turns(*rides: Ride) -> list[Turns]:
    """Of each of them, without rounds in which others disturbed one of them, as long as these are few."""
    found = [turns_of(one.steps()) for one in rides]
    if len({len(turns) for turns in found}) > 1:  # by itself, each has rounds of its own
        return [turns for one in rides for turns in _turns(one)]
    marks = (disturbed_turns(one.record, len(found[0])) for one in rides)
    disturbed = [any(marked) for marked in zip(*marks, strict=True)]
    if sum(disturbed) > REPEATED_SHARE * len(disturbed):
        return found
    return [
        [turn for turn, left_out in zip(turns, disturbed, strict=True) if not left_out] for turns in found
    ]


def _step_ns(one: Ride) -> float | None:
    (turns,) = _turns(one)
    return fmean(per_step(turns)) if turns else None


def _speed(one: Ride) -> float | None:
    step_ns = _step_ns(one)
    return one.samples / (step_ns * 1e-9) if step_ns is not None and one.samples else None


def _times(base: Ride, challenger: Ride) -> dict[str, float]:
    return step_time_log_ratios(*_turns(base, challenger))


def _times_of_equal_steps(base: Ride, challenger: Ride) -> dict[str, float]:
    sizes = base.samples, challenger.samples
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"a step of the sides has {sizes[0]} and {sizes[1]} samples: their times cannot be compared. "
            "Race their throughput: --metric samples_per_s"
        )
    return _times(base, challenger)


def _speeds(base: Ride, challenger: Ride) -> dict[str, float]:
    if not base.samples or not challenger.samples:
        raise ValueError(NO_SAMPLES)
    samples = math.log(challenger.samples / base.samples)
    return {name: samples - value for name, value in _times(base, challenger).items()}


def _memories(base: Ride, challenger: Ride) -> dict[str, float]:
    held = base.record.memory.held, challenger.record.memory.held
    if not held[0] or not held[1]:
        raise ValueError("the kernel did not say how much memory was held")
    return {GATE: math.log(held[1] / held[0])}


def scatter_of(base: Ride, challenger: Ride) -> float | None:
    """The standard deviation of ln(challenger / base) of the step time, of one round; None: of too few."""
    sides = [per_step(turns) for turns in _turns(base, challenger)]
    return scatter_of_totals(*(side[: min(map(len, sides))] for side in sides))


def lacking(metric: Metric, record: LaunchRecord, batch_size: int | None) -> str | None:
    """What a side lacks to be raced by this metric, as its proof tells."""
    has_samples = metric != "samples_per_s" or record.samples_per_step(batch_size) is not None
    return None if has_samples else f"without samples per second: {NO_SAMPLES}"


RACED: dict[Metric, Raced] = {
    "step_time": Raced(_step_ns, _times_of_equal_steps),
    "samples_per_s": Raced(_speed, _speeds),
    "peak_memory": Raced(lambda one: one.record.memory.held, _memories),
}
