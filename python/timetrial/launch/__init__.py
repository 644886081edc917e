"""Launches: one fresh process runs one case, is watched, and leaves a record whatever happens to it."""

from __future__ import annotations

from timetrial.launch.folder import remove_unfinished
from timetrial.launch.heat import Course, Round, schedule
from timetrial.launch.lock import MeasurementLock
from timetrial.launch.plan import LaunchPlan, Limits, Measure
from timetrial.launch.registry import (
    Contender,
    NotBuiltYet,
    known_backends,
    native_backends,
    resolve,
)
from timetrial.launch.run import run_launch
from timetrial.launch.settings import validate_settings
from timetrial.launch.together import heat_launches, launch_together

__all__ = [
    "Contender",
    "Course",
    "LaunchPlan",
    "Limits",
    "Measure",
    "MeasurementLock",
    "NotBuiltYet",
    "Round",
    "heat_launches",
    "known_backends",
    "launch_together",
    "native_backends",
    "remove_unfinished",
    "resolve",
    "run_launch",
    "schedule",
    "validate_settings",
]
