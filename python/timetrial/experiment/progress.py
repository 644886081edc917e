"""What is going on, on standard error. Drawn between launches only: nothing moves while one runs."""

from __future__ import annotations

import contextlib
import io
import sys
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
        if record is not None and record.outcome != "ok":
            first = (record.reason or "").strip().splitlines()
            text = f"{record.case} {record.purpose}: {record.outcome}: {first[0] if first else ''}"
            self._progress.console.print(text, style="yellow", markup=False, highlight=False)
        self._progress.advance(self._task)
        self._progress.refresh()


def say(lines: Sequence[str], *, quiet: bool) -> None:
    """Before anything starts, to whoever waits."""
    with contextlib.suppress(OSError):
        for line in lines if not quiet else ():
            print(f"timetrial: {line}", file=sys.stderr, flush=True)


def progress(*, quiet: bool) -> QuietProgress:
    """A bar on a terminal; silence where nobody would see it move."""
    return QuietProgress() if quiet or not Console(stderr=True).is_terminal else TerminalProgress()
