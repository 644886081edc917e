"""What is going on, on standard error. Drawn between launches only: nothing moves while one runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from timetrial.progress.left import Stage
from timetrial.progress.lines import LineProgress, NotebookProgress
from timetrial.progress.quiet import QuietProgress

__all__ = ["QuietProgress", "Stage", "progress", "say"]


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
    from rich.console import Console

    from timetrial.progress.terminal import TerminalProgress

    return TerminalProgress() if Console(stderr=True).is_terminal else LineProgress()
