"""The fastest way to do one piece of work here: a search through settings whose winner must win a race."""

from __future__ import annotations

from timetrial.tuning.tuned import Trial, Tuned
from timetrial.tuning.tuner import tune

__all__ = ["Trial", "Tuned", "tune"]
