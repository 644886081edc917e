"""Standard output for tables."""

from __future__ import annotations

import sys

from rich.console import Console


def stdout() -> Console:
    """A console that does not cut tables short where standard output is a file or a pipe."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 160)
