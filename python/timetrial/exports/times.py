"""Times of lines, for formats in which a smaller number is a better one."""

from __future__ import annotations

from dataclasses import replace

from timetrial.exports.lines import Line
from timetrial.statistics.intervals import Estimate


def time_of(line: Line) -> tuple[Estimate, bool] | None:
    """Nanoseconds of a step, or (True) of a sample where samples per second were raced. None: it has no time,
    because it failed or memory was raced."""
    if (step := line.values.get("step_time")) is not None:
        return step, False
    if (speed := line.values.get("samples_per_s")) is not None:
        return _inverse(speed), True
    return None


def _inverse(speed: Estimate) -> Estimate:
    """ns per sample of samples per second: the ends of the interval change places."""
    low, high = (None if end is None else 1e9 / end for end in (speed.high, speed.low))
    return replace(speed, estimate=1e9 / speed.estimate, low=low, high=high)
