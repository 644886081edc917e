"""The clock of every measurement: CLOCK_MONOTONIC."""

from __future__ import annotations

from timetrial.core import _core


def now_ns() -> int:
    """Nanoseconds since an arbitrary start, the same for every process of this machine."""
    return _core.now_ns()


def clock_cost_ns() -> float:
    """What one reading costs in C++. Above 200 ns the kernel has no fast clock."""
    return _core.clock_cost_ns()
