"""Lines for logs, and one for a notebook."""

from __future__ import annotations

import html
import time
from types import TracebackType
from typing import Any

from timetrial.progress.forgiving import Forgiving
from timetrial.progress.quiet import QuietProgress, failure
from timetrial.records.model import LaunchRecord
from timetrial.report.numbers import seconds

EVERY_S = 30.0


class LineProgress(QuietProgress):
    """A line now and then, for logs: written when a launch starts, at most one every EVERY_S seconds."""

    every_s = EVERY_S

    def __init__(self) -> None:
        super().__init__()
        self._stream = Forgiving()
        self._began = self._said = time.monotonic()

    def next(self, words: str) -> None:
        """This one starts now."""
        now = time.monotonic()
        if now - self._said < self.every_s:
            return
        self._said = now
        spent = seconds(now - self._began)
        if self.plan.launches:
            spent = f"{self.plan.ended} of {self.plan.launches} · {spent}"
        self._draw(f"timetrial: {spent}{self.left()} · {words}")

    def done(self, record: LaunchRecord | None) -> None:
        """It ended; None: there is no record of it."""
        super().done(record)
        if text := failure(record):
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
        self._shown: Any = None  # IPython's handle of the line

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._draw("")

    def _draw(self, text: str) -> None:
        from IPython.display import display

        # An output of its own: standard error has a red ground, and stays. Without text it takes no room.
        line = {"text/plain": text, "text/html": f"<small>{html.escape(text)}</small>" if text else ""}
        if self._shown is None:
            show: Any = display
            self._shown = show(line, raw=True, display_id=True)
        else:
            self._shown.update(line, raw=True)
