"""Schedules of the learning rate, computed here: a contender gets one number for each step.

Each is a formula of the step `t` since the beginning (behind the warm-up), from 0, that gives the part of the
optimizer's `learning_rate` of that step. A run longer than its rates stays with the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.errors import InputError, nearest

Steps = NDArray[np.float64]


@dataclass(frozen=True)
class ScheduleKey:
    """A number of a schedule: its default (None: must be given), its range, and whether it counts steps."""

    default: float | None
    low: float
    most: float
    words: str
    whole: bool = False

    @property
    def range(self) -> str:
        """In words."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g}" + (f" to {self.most:g}" if math.isfinite(self.most) else "")


@dataclass(frozen=True)
class Schedule:
    """`part`: of the rate, at these steps, of `length` altogether."""

    formula: str
    keys: Mapping[str, ScheduleKey]
    part: Callable[[Steps, Mapping[str, float], int], Steps]


_FACTOR = ScheduleKey(None, 1e-6, 1, "what the rate is multiplied by")
_EVERY = ScheduleKey(None, 1, math.inf, "steps until it is", whole=True)

SCHEDULES: dict[str, Schedule] = {
    "constant": Schedule("1", {}, lambda t, _keys, _length: np.ones_like(t)),
    "step": Schedule(
        "factor^floor(t / every)",
        {"factor": _FACTOR, "every": _EVERY},
        lambda t, keys, _length: keys["factor"] ** np.floor(t / keys["every"]),
    ),
    "inverse": Schedule(
        "1 / (1 + decay t)",
        {"decay": ScheduleKey(None, 0, math.inf, "how fast the rate falls, per step")},
        lambda t, keys, _length: 1 / (1 + keys["decay"] * t),
    ),
    "exponential": Schedule(
        "factor^(t / every)",
        {"factor": _FACTOR, "every": _EVERY},
        lambda t, keys, _length: keys["factor"] ** (t / keys["every"]),
    ),
    # Loshchilov, Hutter 2017, without restarts.
    "cosine": Schedule(
        "floor + (1 - floor) (1 + cos(pi t / steps)) / 2",
        {"floor": ScheduleKey(0, 0, 1, "the part of the rate that it ends with")},
        lambda t, keys, length: keys["floor"] + (1 - keys["floor"]) * (1 + np.cos(np.pi * t / length)) / 2,
    ),
}

# Of every schedule.
COMMON = {
    "warmup": ScheduleKey(0, 0, math.inf, "steps over which the rate first grows evenly", whole=True),
    "steps": ScheduleKey(
        None, 1, math.inf, "how many rates there are; unless given, the steps of the run", whole=True
    ),
}


def check_schedule(schedule: object) -> dict[str, Any]:
    """The complete schedule. Errors name key, value and range."""
    if not isinstance(schedule, Mapping):
        raise InputError(
            f'The schedule is {schedule!r}; expected a table such as {{ name = "cosine", warmup = 100 }}.'
        )
    name = schedule.get("name")
    if not isinstance(name, str) or name not in SCHEDULES:
        raise InputError(f"There is no schedule {name!r}.{nearest(str(name), SCHEDULES)}")
    known = {**SCHEDULES[name].keys, **COMMON}
    for key in schedule:
        if key != "name" and key not in known:
            raise InputError(f"The schedule '{name}' has no '{key}'.{nearest(str(key), known)}")
    complete: dict[str, Any] = {"name": name}
    for key, limits in known.items():
        value = schedule.get(key, limits.default)
        if value is None:
            if key == "steps":
                continue
            raise InputError(f"The schedule '{name}' needs a '{key}' ({limits.range}).")
        right = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not right or not limits.low <= value <= limits.most or (limits.whole and value != int(value)):
            raise InputError(f"'{key}' of the schedule '{name}' is {value!r}; expected {limits.range}.")
        complete[key] = int(value) if limits.whole else float(value)
    return complete


def rates(schedule: Mapping[str, Any], learning_rate: float, run_steps: int) -> NDArray[np.float64]:
    """The rate of every step. InputError: the schedule is shorter than the run."""
    length = int(schedule.get("steps", run_steps))
    if length < run_steps:
        raise InputError(
            f"The schedule '{schedule['name']}' has {length} steps, but the run has {run_steps}. "
            f"Leave optimizer.schedule.steps out, or give at least {run_steps}."
        )
    warmup = int(schedule["warmup"])
    if warmup >= length:
        raise InputError(
            f"'warmup' of the schedule '{schedule['name']}' is {warmup}, but there are {length} steps; "
            f"expected fewer than {length}."
        )
    rising = np.arange(1, warmup + 1) / max(1, warmup)
    behind = np.arange(length - warmup, dtype=np.float64)
    part = SCHEDULES[schedule["name"]].part(behind, schedule, length - warmup)
    return learning_rate * np.concatenate([rising, part])


def schedule_keys() -> dict[str, str]:
    """Every key of a schedule, with the words of the reference."""
    found = {"name": "; ".join(f"`{name}`: `{one.formula}`" for name, one in SCHEDULES.items())}
    for name, one in SCHEDULES.items():
        for key, limits in one.keys.items():
            found[key] = (
                f"{found[key]}, `{name}`" if key in found else f"{limits.words}: {limits.range}; of `{name}`"
            )
    return {**found, **{key: f"{limits.words}: {limits.range}" for key, limits in COMMON.items()}}
