"""A history as a table: each name with its last number. Nothing here compares numbers of two moments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.records.files import near
from timetrial.report.columns import Layout, Line
from timetrial.report.numbers import interval_words

if TYPE_CHECKING:
    from timetrial.changes.entry import Entry
    from timetrial.changes.history import History

_MOST = 60  # lines


class HistoryTable:
    """A renderable for rich."""

    def __init__(self, history: History):
        self._history = history

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        history = self._history
        series: dict[tuple[str, str, str | None], list[Entry]] = {}
        for one in history.entries:
            series.setdefault(one.series, []).append(one)
        machines = len({one.machine_id for one in history.entries})
        words = (
            f"{len(history)} numbers, {len(series)} series, {machines} machine{'s' if machines > 1 else ''}"
        )
        yield Text(f"{near(history.path)}: {words}", style="bold", overflow="fold")
        titles = ("name", "metric", "numbers", "last", "when", "breaks")
        lines = [Line(self._line(found)) for found in list(series.values())[:_MOST]]
        yield from Layout(titles, keys=2).lines(lines, options.max_width)
        if len(series) > _MOST:
            yield Text(f"  and {len(series) - _MOST} more", style="dim")
        for note in history.notes:
            yield Text(f"! {note}", style="yellow", overflow="fold")

    def _line(self, found: list[Entry]) -> list[tuple[str, str]]:
        last = found[-1]
        breaks = sum(a.place != b.place for a, b in itertools.pairwise(found))
        metric = last.metric if last.against is None else f"{last.metric}, ratio"
        return [
            (last.name, ""),
            (metric, ""),
            (str(len(found)), ""),
            (value_words(last), "bold"),
            (f"{last.when:%Y-%m-%d %H:%M}", "dim"),
            (str(breaks), "dim"),
        ]


def short_name(entry: Entry, longest: int = 60) -> str:
    """The beginning of a name."""
    return entry.name if len(entry.name) <= longest else f"{entry.name[: longest - 3]}..."


def value_words(entry: Entry) -> str:
    """'8.31 ms [8.2, 8.5]', or what failed."""
    if entry.estimate is None:
        return entry.outcome if entry.outcome not in (None, "ok") else "no number"
    return interval_words(entry.unit, entry.estimate, entry.low, entry.high)
