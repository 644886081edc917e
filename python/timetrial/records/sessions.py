"""The sessions in which an experiment was measured: one, unless it was ended and resumed.

results/<id>/unfinished          there until everything is measured, locked by the process that measures
results/<id>/resumed/<n>.json    written when a session after the first one begins
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from timetrial.cautions import Caution
from timetrial.errors import InputError, MeasurementError, TimetrialError
from timetrial.records.files import explained, near, write_once
from timetrial.records.model import Model
from timetrial.records.store import read_record, to_bytes

UNFINISHED_FILE = "unfinished"
RESUMED_FOLDER = "resumed"
_WAIT_S = 1.0  # for whoever only looks whether somebody measures

State = Literal["whole", "running", "unfinished", "unknown"]
_STATES: dict[bool | None, State] = {True: "unfinished", False: "running", None: "unknown"}


class Resumed(Model):
    """What a later session found."""

    at: str
    launches: int  # that had finished before
    machine: dict[str, Any]
    changed: list[str] = Field(default_factory=list)  # of the machine, in words


@contextlib.contextmanager
def session(folder: Path) -> Iterator[None]:
    """While something is measured into `folder`. If the block ends with an error, the folder stays
    unfinished. InputError: another process measures into it. MeasurementError: somebody took it away."""
    file = folder / UNFINISHED_FILE
    with explained(file):
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + _WAIT_S
        while _locked(fd, fcntl.LOCK_EX) is False:
            if time.monotonic() > deadline:
                raise InputError(f"'{folder}' is being measured by another process. Wait for it.")
            time.sleep(0.01)
        try:
            yield
        except (TimetrialError, OSError):  # whatever it stumbled over there
            check_there(folder)
            raise
        check_there(folder)
        with explained(file):
            file.unlink(missing_ok=True)
    finally:
        os.close(fd)


def check_there(folder: Path) -> None:
    """MeasurementError: a folder that is measured into went away meanwhile. To be asked before each launch:
    it would make the folder anew, and hours later nobody could read what lies there."""
    if not os.path.lexists(folder / UNFINISHED_FILE):
        raise MeasurementError(
            f"'{near(folder.absolute())}' was removed or moved while it was measured into: no records can be "
            "kept there any more. If it was moved, --resume NEW_PLACE does the rest of a run or race; "
            "otherwise measure anew, into a folder that stays: --results FOLDER."
        )


def _locked(fd: int, how: int) -> bool | None:
    """False: somebody else has it. None: this file system has no locks."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def state(folder: Path) -> State:
    """Of a record: all of it is there, somebody measures, or it was ended before it was whole. `unknown`: one
    of the last two, on a file system without locks."""
    try:
        fd = os.open(folder / UNFINISHED_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return "whole"  # as all records that are older than this file
    try:
        return _STATES[_locked(fd, fcntl.LOCK_SH)]
    finally:
        os.close(fd)


def unfinished(results: Path) -> list[Path]:
    """Folders under `results` that were ended before they were whole, and that nobody measures into."""
    marks = sorted(results.glob(f"*/{UNFINISHED_FILE}"))
    return [mark.parent for mark in marks if state(mark.parent) == "unfinished"]


def _files_of(folder: Path) -> list[Path]:
    """Of the later sessions, in order."""
    return sorted((folder / RESUMED_FOLDER).glob("*.json"))


def write_resumed(folder: Path, *, launches: int, machine: dict[str, Any], changed: list[str]) -> None:
    """Notes that a session begins in which the rest is measured."""
    at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    number = len(_files_of(folder))
    record = Resumed(at=at, launches=launches, machine=machine, changed=changed)
    write_once(folder / RESUMED_FOLDER / f"{number:03d}.json", to_bytes(record))


def resuming(folder: Path, verb: Literal["run", "race"]) -> str:
    """The command."""
    return f"`timetrial {verb} --resume {near(folder.absolute())}` does the rest"


def said_of(folder: Path, cure: str) -> list[str]:
    """What a reader must know: that something is missing, and its `cure`; that it was resumed."""
    words = []
    now = state(folder)
    if now == "running":
        words.append(Caution.RUNNING.words())
    if now in ("unfinished", "unknown"):
        words.append(Caution.UNFINISHED.words(cure=cure))
    for file in _files_of(folder):
        try:
            one = read_record(file, Resumed)
        except InputError as error:
            words.append(Caution.RESUMED_UNREAD.words(error=error))
            continue
        changed = f"; meanwhile {', '.join(one.changed)}" if one.changed else ""
        words.append(Caution.RESUMED.words(at=one.at, launches=one.launches, changed=changed))
    return words
