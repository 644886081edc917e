"""What a contender writes on its standard output and error: files of its launch, of a size that we choose."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from timetrial.records.files import open_regular

TAIL_BYTES = 16 * 1024  # of each, in a record
MOST_BYTES = 16 << 20  # of such a file; beyond that its middle goes
KEPT_BYTES = 1 << 20  # of its beginning, and of its end


class OutputFile:
    """One of the two, made before the contender starts, which appends to it. Of what somebody prints for ever
    the first and the last megabyte stay."""

    def __init__(self, path: Path):
        """OSError: the file cannot be made."""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._end = b""
        self._left_out = 0

    def trim(self) -> None:
        """Takes the middle out of a file that has become too large; cheap where it has not. What is written
        meanwhile may get lost."""
        size = os.fstat(self._fd).st_size
        if size > MOST_BYTES:
            self._take_out(size)

    def _take_out(self, size: int) -> None:
        fresh = os.pread(self._fd, KEPT_BYTES, max(KEPT_BYTES, size - KEPT_BYTES))
        ends = self._end + fresh
        self._left_out += size - KEPT_BYTES + len(self._end) - len(ends[-KEPT_BYTES:])
        self._end = ends[-KEPT_BYTES:]
        os.ftruncate(self._fd, KEPT_BYTES)

    def close(self) -> None:
        """Nobody writes any more: the file gets its end again."""
        with contextlib.suppress(OSError):
            if self._left_out:
                self._take_out(os.fstat(self._fd).st_size)
                os.pwrite(self._fd, b"\n[%d bytes left out]\n" % self._left_out + self._end, KEPT_BYTES)
        os.close(self._fd)


def head(path: Path, limit: int = 1024 * 1024) -> str:
    """The beginning of such a file; '' if there is none."""
    return _part(path, limit, from_end=False)


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The end of such a file; '' if there is none."""
    return _part(path, limit, from_end=True)


def _part(path: Path, limit: int, *, from_end: bool) -> str:
    """The contender may have put something else there, which is not waited for."""
    try:
        with open_regular(path) as file:
            left_out = max(0, os.fstat(file.fileno()).st_size - limit) if from_end else 0
            file.seek(left_out)
            text = file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
    return f"[{left_out} bytes left out] {text}" if left_out else text
