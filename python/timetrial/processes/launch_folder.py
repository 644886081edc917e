"""The folder of a launch, and the two in it that are its contender's own and go with the launch: no cache
there is ever warm."""

from __future__ import annotations

import os
from pathlib import Path

from timetrial.cautions import Caution
from timetrial.errors import MeasurementError
from timetrial.processes.left import files_below, printable, remove
from timetrial.records.files import explained
from timetrial.records.model import LaunchRecord
from timetrial.records.store import RECORD_FILE, write_launch

OWN = ("home", "tmp")
_NAMED = 3  # files in the warning
_TRIES = 3


def make_folder(folder: Path) -> None:
    """Of one launch. MeasurementError: it had one already, or cannot be written."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / RECORD_FILE).exists():
            raise MeasurementError(f"{folder} has a record already: a launch writes into a folder of its own")
        for name in OWN:
            (folder / name).mkdir(exist_ok=True)


def remove_own_folders(folder: Path) -> None:
    """The contender's two, however they look by now."""
    for name in OWN:
        remove(folder / name)


def remove_unfinished(folder: Path) -> None:
    """What launches that never got a record have left in the folder of an experiment or race."""
    launches = (one for places in ("proof/*", "launches/*", "pairs/*/*") for one in folder.glob(places))
    for launch in launches:
        if launch.is_symlink() or (launch.is_dir() and not (launch / RECORD_FILE).exists()):
            remove(launch)
        else:
            remove_own_folders(launch)


def write_record(folder: Path, record: LaunchRecord) -> LaunchRecord:
    """record.json; who puts another one there before is a crash. MeasurementError: it cannot be written."""
    for tries_left in reversed(range(_TRIES)):
        if words := room_for_record(folder):
            record = record.model_copy(update={"outcome": "crash", "reason": words})
        try:
            write_launch(folder, record)
            break
        except MeasurementError:  # somebody took the folder away, or put a record there, just now?
            if tries_left == 0:
                raise
    return record


def room_for_record(folder: Path) -> str | None:
    """Takes away what stands where the record, or its folder, belongs. What to say if the contender has
    written a record."""
    words = None
    if os.path.lexists(folder / RECORD_FILE):
        remove(folder / RECORD_FILE)
        words = f"protocol: it left a {RECORD_FILE}, which is not its to write"
    if folder.is_symlink() or not folder.is_dir():
        remove(folder)
    return words


def written_to_home(home: Path) -> list[str]:
    """A warning that names the biggest files; none where nothing was written."""
    files = sorted(((size, path) for path, size in files_below(home) if size), reverse=True)
    if not files:
        return []
    total = sum(size for size, _ in files)
    named = ", ".join(f"{printable(path.relative_to(home))} {size}" for size, path in files[:_NAMED])
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return [Caution.WROTE_HOME.words(total=total, files=f"{named}{more}")]
