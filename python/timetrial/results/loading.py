"""Earlier measurements, by folder or id."""

from __future__ import annotations

from pathlib import Path

from timetrial.records import store
from timetrial.records.race import is_race
from timetrial.results.race import Race
from timetrial.results.results import Results


def load(path: str | Path) -> Results | Race:
    """The results of an earlier run, or an earlier race: its folder, or its id under results/."""
    folder = store.find(path)
    return Race(folder) if is_race(folder) else Results(folder)
