"""Libraries of a process, and what was set in them, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.report.columns import Grid

if TYPE_CHECKING:
    from timetrial.in_process.loaded import LoadedLibraries
    from timetrial.in_process.settings import Applied

_NUMBER = re.compile(r"\d+(\.\d+)+")
_LONGEST = 12  # of a version without a number


def libraries_table(loaded: LoadedLibraries) -> RenderableType:
    """A line for each, then what contradicts itself."""
    if not loaded:
        return Text("no numerical library is loaded that timetrial knows")
    titles = ("library", "file", "version", "kernels", "threads", "by", "integers")
    rows = (
        [
            one.vendor or one.kind,
            Path(one.path).name,
            _short(one.version.removeprefix(one.vendor)),
            one.kernel or "-",
            "-" if one.threads is None else f"{one.threads}{' *' if one.of_calling_thread else ''}",
            one.threading or "-",
            f"{one.integer_bits} bits" if one.integer_bits else "-",
        ]
        for one in loaded
    )
    lines: list[RenderableType] = [Grid(titles, rows, wraps=False)]
    if any(one.of_calling_thread for one in loaded):
        lines.append(Text("* of the calling thread", style="dim"))
    limits = dict.fromkeys(
        f"{one.vendor or Path(one.path).name}: {one.limits}" for one in loaded if one.limits
    )
    return Group(*lines, *(Text(words, style="dim") for words in limits), *_warnings(loaded.contradictions))


def applied_table(applied: Applied) -> RenderableType:
    """What was set in which library, and what it answered."""
    titles = ("setting", "library", "asked", "effective", "status", "how read")
    rows = (
        [one.setting, one.library, one.asked, one.effective or "-", one.status, one.how_read]
        for one in applied.readings
    )
    return Group(Grid(titles, rows), *_warnings(applied.unreached))


def _warnings(words: Iterable[str]) -> list[RenderableType]:
    return [Text(f"! {line}", style="yellow") for line in words]


def _short(version: str) -> str:
    """'0.3.21' of 'OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...'."""
    number = _NUMBER.search(version)
    return number[0] if number else version[:_LONGEST] or "-"
