"""A bar on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from timetrial.progress.forgiving import Forgiving
from timetrial.progress.left import Stage
from timetrial.progress.quiet import QuietProgress, failure
from timetrial.records.model import LaunchRecord


class TerminalProgress(QuietProgress):
    """A bar that is redrawn when a launch starts or ends, by this thread, and by nothing else."""

    def __init__(self) -> None:
        super().__init__()
        # Without auto-refresh rich has no thread that would wake up and draw during a segment.
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(file=Forgiving()),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, left="")

    def __enter__(self) -> TerminalProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def stages(self, stages: Mapping[Any, Stage]) -> None:
        """These are planned, by name, in this order."""
        super().stages(stages)
        self._draw()

    def more(self, launches: int) -> None:
        """So many beyond those that were planned, of the stage that is under way."""
        super().more(launches)
        self._draw()

    def next(self, words: str) -> None:
        """This one starts now."""
        self._progress.update(self._task, description=words)
        self._draw()

    def done(self, record: LaunchRecord | None) -> None:
        """It ended; None: there is no record of it."""
        super().done(record)
        if text := failure(record):
            self._progress.console.print(text, style="yellow", markup=False, highlight=False)
        self._draw()

    def left_out(self, launches: int = 1) -> None:
        """These are not launched."""
        super().left_out(launches)
        self._draw()

    def _draw(self) -> None:
        left = self.left().removeprefix(", ")
        plan = self.plan
        self._progress.update(
            self._task, total=plan.launches or None, completed=plan.ended, left=left, refresh=True
        )
