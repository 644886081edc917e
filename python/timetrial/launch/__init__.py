"""Launches: one fresh process runs one case, is watched, and leaves a record whatever happens to it."""

from __future__ import annotations

from timetrial.heats.heat import Course, Heat, Ridden, Round, end_heats, lengthened, schedule
from timetrial.launch.plan import LaunchPlan, Limits, Measure
from timetrial.launch.run import run_launch
from timetrial.launch.together import heat_launches, launch_together
from timetrial.processes.launch_folder import remove_unfinished
from timetrial.processes.lock import MeasurementLock

__all__ = [
    "Course",
    "Heat",
    "LaunchPlan",
    "Limits",
    "Measure",
    "MeasurementLock",
    "Ridden",
    "Round",
    "end_heats",
    "heat_launches",
    "launch_together",
    "lengthened",
    "remove_unfinished",
    "run_launch",
    "schedule",
]
