"""Launches: one fresh process runs one case, is watched, and leaves a record whatever happens to it."""

from __future__ import annotations

from timetrial.launch.lock import MeasurementLock
from timetrial.launch.pair import Pair, Round, schedule
from timetrial.launch.plan import LaunchPlan, Limits, Measure
from timetrial.launch.registry import (
    Contender,
    NotBuiltYet,
    known_backends,
    native_backends,
    resolve,
)
from timetrial.launch.run import race_launches, run_launch
from timetrial.launch.settings import validate_settings

__all__ = [
    "Contender",
    "LaunchPlan",
    "Limits",
    "Measure",
    "MeasurementLock",
    "NotBuiltYet",
    "Pair",
    "Round",
    "known_backends",
    "native_backends",
    "race_launches",
    "resolve",
    "run_launch",
    "schedule",
    "validate_settings",
]
