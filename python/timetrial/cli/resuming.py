"""The record that `--resume` names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from timetrial.errors import InputError


def resumed_folder(record: str, results: Path, verb: Literal["run", "race"], given: Sequence[str]) -> Path:
    """Its folder. InputError: something else was `given` beside it, or it is of the other command."""
    from timetrial.records import store
    from timetrial.records.race import is_race

    if given:
        raise InputError(
            f"--resume goes on with what '{record}' asked for, and {', '.join(given)} was given as well. "
            "Leave that out; or measure anew, without --resume."
        )
    folder = store.find(record, results)
    made_by = "race" if is_race(folder) else "run"
    if made_by != verb:
        raise InputError(f"'{folder}' is a {made_by}: timetrial {made_by} --resume {record}")
    return folder
