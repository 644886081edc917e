"""Starts a program under timetrial-exec, as the launch does, and reads the reports."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from timetrial.core import native

WAIT_S = 20.0


class Supervised:
    def __init__(self, program: Sequence[str], options: Sequence[str] = (), keep: Sequence[int] = ()):
        control_read, self.control = os.pipe()
        self.status, status_write = os.pipe()
        self.process = subprocess.Popen(
            [
                str(native.exec_path()),
                *options,
                *("--control", str(control_read), "--status", str(status_write), "--", *program),
            ],
            pass_fds=(control_read, status_write, *keep),
        )
        os.close(control_read)
        os.close(status_write)
        self._words = b""

    def send(self, line: str) -> None:
        os.write(self.control, line.encode() + b"\n")

    def report(self) -> str | None:
        """The next report; None at the end."""
        while b"\n" not in self._words:
            ready, _, _ = select.select([self.status], [], [], WAIT_S)
            assert ready, f"no report within {WAIT_S} s"
            got = os.read(self.status, 4096)
            if not got:
                return None
            self._words += got
        line, _, self._words = self._words.partition(b"\n")
        return line.decode()

    def reports(self) -> list[str]:
        """All that are left."""
        return list(iter(self.report, None))

    def started(self) -> int:
        """Waits for the contender; its process id."""
        report = self.report()
        assert report is not None
        assert report.startswith("started "), report
        return int(report.split()[1])

    def leave(self) -> None:
        """What happens when the parent dies: its end of the control pipe closes."""
        if self.control >= 0:
            os.close(self.control)
            self.control = -1

    def close(self) -> None:
        self.leave()
        os.close(self.status)
        self.process.wait(WAIT_S)


@contextlib.contextmanager
def supervised(
    program: Sequence[str], options: Sequence[str] = (), keep: Sequence[int] = ()
) -> Iterator[Supervised]:
    contender = Supervised(program, options, keep)
    try:
        yield contender
    finally:
        contender.close()


def state(pid: int) -> str | None:
    """The kernel's letter for a process: R, S, T (stopped), Z ...; None when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def wait_until(condition: object, what: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {WAIT_S} s until {what}"
        time.sleep(0.005)
