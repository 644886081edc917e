"""Writing into the launch's folder: once, whole, and with words when it cannot be done."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from timetrial.errors import MeasurementError
from timetrial.records.model import LaunchRecord

TAIL_BYTES = 16 * 1024

_ADVICE = {
    errno.ENOSPC: "free some space, or choose another results folder",
    errno.EDQUOT: "the quota is used up: free some space, or choose another results folder",
    errno.EROFS: "the file system is read-only: choose another results folder",
    errno.EACCES: "no permission: choose a results folder that you can write",
    errno.EPERM: "no permission: choose a results folder that you can write",
}


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns an OSError about `path` into a MeasurementError that says what to do."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "check the folder")
        raise MeasurementError(
            f"cannot write {error.filename or path}: {error.strerror}; {advice}"
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """The file appears whole or not at all, and survives a crash of the machine right after."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with explained(path):
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def write_record(folder: Path, record: LaunchRecord) -> None:
    """record.json of a launch: the last thing written, so a folder with one is complete."""
    write_atomically(folder / "record.json", record.model_dump_json(indent=1) + "\n")


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The end of a text file that a contender wrote; '' if there is none."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            text = file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
    return f"[{size - limit} bytes left out] {text}" if size > limit else text
