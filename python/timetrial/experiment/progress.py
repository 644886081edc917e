"""What is going on, on standard error. Drawn between launches only: nothing moves while one runs."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from timetrial.records.model import LaunchRecord
from timetrial.report.numbers import seconds

EVERY_S = 30.0


class QuietProgress:
    """Says nothing."""

    def __enter__(self) -> QuietProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def total(self, launches: int) -> None:
        """So many launches are planned."""

    def more(self, launches: int) -> None:
        """So many beyond those that were planned."""

    def next(self, words: str) -> None:
        """This one starts now."""

    def done(self, record: LaunchRecord | None) -> None:
        """It ended; None: it was left out."""


class _Forgiving(io.StringIO):
    """Standard error, as long as it takes anything: a terminal that is gone must not end the run."""

    def __init__(self) -> None:
        super().__init__()
        # This one, whatever takes its name: rich puts a stream there that writes back into this one.
        self._stream = sys.stderr

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


class TerminalProgress(QuietProgress):
    """A bar that is redrawn when a launch starts or ends, by this thread, and by nothing else."""

    def __init__(self) -> None:
        # Without auto-refresh rich has no thread that would wake up and draw during a segment.
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(file=_Forgiving()),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)
        self._launches = 0

    def __enter__(self) -> TerminalProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def total(self, launches: int) -> None:
        """So many launches are planned."""
        self._launches = launches
        self._progress.update(self._task, total=launches, refresh=True)

    def more(self, launches: int) -> None:
        """So many beyond those that were planned."""
        self.total(self._launches + launches)

    def next(self, words: str) -> None:
        """This one starts now."""
        self._progress.update(self._task, description=words, refresh=True)

    def done(self, record: LaunchRecord | None) -> None:
        """It ended; None: it was left out."""
        if text := _failure(record):
            self._progress.console.print(text, style="yellow", markup=False, highlight=False)
        self._progress.advance(self._task)
        self._progress.refresh()


class LineProgress(QuietProgress):
    """A line now and then, for logs: written when a launch starts, at most one every EVERY_S seconds."""

    every_s = EVERY_S

    def __init__(self) -> None:
        self._stream = _Forgiving()
        self._total = 0
        self._done = 0
        self._began = self._said = time.monotonic()

    def total(self, launches: int) -> None:
        """So many launches are planned."""
        self._total = launches

    def more(self, launches: int) -> None:
        """So many beyond those that were planned."""
        self._total += launches

    def next(self, words: str) -> None:
        """This one starts now."""
        now = time.monotonic()
        if now - self._said < self.every_s:
            return
        self._said = now
        spent_s = now - self._began
        spent = f"{self._done} of {self._total} · {seconds(spent_s)}" if self._total else seconds(spent_s)
        if self._total and self._done:
            left_s = spent_s / self._done * (self._total - self._done)
            spent += f", about {seconds(left_s)} left"
        self._draw(f"timetrial: {spent} · {words}")

    def done(self, record: LaunchRecord | None) -> None:
        """It ended; None: it was left out."""
        self._done += 1
        if text := _failure(record):
            self._write(f"timetrial: {text}\n")

    def _draw(self, text: str) -> None:
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class NotebookProgress(LineProgress):
    """One line under a notebook's cell, which each launch replaces; it goes when all is done."""

    every_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._width = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw("")
        self._write("\r")

    def _draw(self, text: str) -> None:
        self._write(f"\r{text:<{self._width}}")
        self._width = len(text)


def _failure(record: LaunchRecord | None) -> str:
    """Which launch failed, and how; "" where none did."""
    if record is None or record.outcome == "ok":
        return ""
    first = (record.reason or "").strip().splitlines()
    return f"{record.case} {record.purpose}: {record.outcome}: {first[0] if first else ''}"


def say(lines: Sequence[str], *, quiet: bool) -> None:
    """Before anything starts, to whoever waits."""
    with contextlib.suppress(OSError):
        for line in lines if not quiet else ():
            print(f"timetrial: {line}", file=sys.stderr, flush=True)


def progress(*, quiet: bool) -> QuietProgress:
    """A bar on a terminal, a line under a notebook's cell, a line every EVERY_S seconds in a log."""
    if quiet:
        return QuietProgress()
    if type(sys.stderr).__module__.startswith("ipykernel"):
        return NotebookProgress()
    return TerminalProgress() if Console(stderr=True).is_terminal else LineProgress()
