"""The table of `timetrial self-check`."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.report.columns import Layout, Line
from timetrial.report.numbers import seconds

if TYPE_CHECKING:
    from timetrial.selfcheck.run import SelfCheck
    from timetrial.selfcheck.tally import Tally

_TITLES = ("race", "n", "false verdicts", "found", "estimate", "inconclusive", "pairs", "time")


class SelfCheckTable:
    """A renderable for rich: a line per check, then what is worse than promised."""

    def __init__(self, found: SelfCheck):
        self._found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        found = self._found
        races = str(found.races)
        if found.races < found.planned:
            races = f"interrupted after {found.races} of {found.planned}"
        yield Text(
            f"self-check · {races} races whose answer is known · {seconds(found.seconds)}", style="bold"
        )
        layout = Layout(_TITLES, right=frozenset({1}))
        yield from layout.lines([Line(list(_cells(one))) for one in found.tallies], options.max_width)
        for words in found.left_out:
            yield Text(f"left out: {words}", style="yellow")
        judged, false, bound = found.equals
        if judged:
            yield Text(f"equals called different: {false} of {judged} races (at most {100 * bound:.1f} %)")
        for fault in found.faults:
            yield Text(f"! {fault}", style="bold red")
        if found.races and not found.faults:
            yield Text("Nothing is worse than promised (bounds: 95 %, one-sided).", style="green")
        left = found.races < found.planned
        goes_on = f"    go on: timetrial self-check --resume {found.folder}" if left else ""
        yield Text(f"  races: {found.folder}{goes_on}", style="dim", overflow="fold")


def _cells(tally: Tally) -> Iterator[tuple[str, str]]:
    n = len(tally.judged)
    yield tally.check.name, ""
    yield str(n), ""
    yield (
        f"{tally.false} (at most {100 * tally.false_at_most:.1f} %)" if n else "-",
        "red" if tally.false else "",
    )
    if tally.check.is_equal:
        yield "-", ""
    else:
        yield f"{tally.found} (at least {100 * tally.found_at_least:.0f} %)" if n else "-", ""
    yield "-" if tally.estimate is None else f"{100 * tally.estimate:+.2f} %", ""
    yield str(tally.inconclusive), ""
    yield f"{median(one.pairs for one in tally.judged):.0f}" if n else "-", ""
    yield seconds(median(one.seconds for one in tally.judged)) if n else "-", "dim"
