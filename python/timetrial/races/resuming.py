"""What is missing of an earlier measurement."""

from __future__ import annotations

from pathlib import Path

from timetrial.races.racing import resume_race
from timetrial.records import store
from timetrial.records.race import is_race
from timetrial.results.race import Race
from timetrial.results.results import Results


def resume(path: str | Path, *, quiet: bool = False) -> Results | Race:
    """Does what is missing of a run or race that was ended, and repeats nothing. Ctrl-C keeps the records.
    InputError: nothing is missing, it was begun on another machine, or its words mean other cases now."""
    folder = store.find(path)
    if is_race(folder):
        return resume_race(folder, quiet=quiet)
    from timetrial.experiment.runner import resume_experiment

    return resume_experiment(folder, quiet=quiet)
