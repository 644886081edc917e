"""Files of records: written once and whole, with words when that cannot be done; and how a path is said."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from timetrial.errors import MeasurementError
from timetrial.records.model import FileMark

_NO_ROOM = "Free some space, or choose another results folder; the records written so far are complete"
_NO_PERMISSION = "Choose a results folder that you can write"
_ADVICE = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: _NO_PERMISSION,
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
}


def open_regular(path: Path) -> BinaryIO:
    """A file that somebody else may have put there, to read: no FIFO or device, which may never end. OSError
    says what it is instead."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise OSError(errno.EINVAL, "it is no regular file", str(path))


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Such a file, whole. OSError: it is something else, or has more than `most_bytes`."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {size} bytes, {most_bytes} at most are read", str(path))
        return file.read(most_bytes + 1)


def mark_of(data: bytes) -> FileMark:
    """What a record says of a file with this content."""
    return FileMark(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns an OSError about `path` into a MeasurementError that says what to do."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Check the folder")
        raise MeasurementError(f"'{path}' cannot be written: {error.strerror}. {advice}.") from error


def near(path: Path) -> Path:
    """As somebody in the working directory would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def write_once(path: Path, data: bytes, *, replaces: bool = False) -> None:
    """All of the file or nothing, safe against a crash of the machine; never over an older one, unless it
    `replaces` it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with explained(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            (os.replace if replaces else os.link)(temporary, path)
        except FileExistsError:
            raise MeasurementError(f"'{path}' exists: records are written once and never changed.") from None
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
