"""The parent's ends of the pipes: it blocks in poll, never spins, and never waits without a deadline."""

from __future__ import annotations

import os
import select
from collections.abc import Sequence

# Of what is read at once: a contender that writes for ever must not eat our memory.
LINE_LIMIT = 16 * 1024 * 1024


class LineReader:
    """Lines from a pipe, without blocking."""

    def __init__(self, fd: int):
        self.fd = fd
        self.ended = False
        self.too_long = False  # more than LINE_LIMIT came at once: nothing more is read
        self._pending = bytearray()
        os.set_blocking(fd, False)

    def read_lines(self) -> list[bytes]:
        """All complete lines that have arrived. Sets `ended` at the end of the file."""
        while not self.ended:
            try:
                got = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            self._pending += got
            self.too_long = len(self._pending) > LINE_LIMIT
            self.ended = self.too_long or not got
        *lines, rest = self._pending.split(b"\n")
        self._pending = rest
        return [bytes(line) for line in lines]


def wait_readable(readers: Sequence[LineReader], timeout_s: float) -> bool:
    """Blocks until one of them has something to read (or has ended), or the time is over."""
    poll = select.poll()
    watched = 0
    for reader in readers:
        if not reader.ended:
            poll.register(reader.fd, select.POLLIN)
            watched += 1
    return watched > 0 and bool(poll.poll(max(0, int(timeout_s * 1000) + 1)))


def write_line(fd: int, line: str) -> bool:
    """False if nobody reads any more."""
    try:
        os.write(fd, line.encode() + b"\n")
    except BrokenPipeError:
        return False
    return True
