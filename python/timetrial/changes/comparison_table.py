"""Two results side by side: what changed around them, which rows moved, and the race that would settle it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.changes.comparison import WORSE, facts_by_row, folder_of
from timetrial.records.files import near
from timetrial.records.metric import METRICS
from timetrial.report.columns import Layout, Line
from timetrial.report.numbers import accuracy_words, measured_words
from timetrial.results.results import Results

if TYPE_CHECKING:
    from timetrial.changes.comparison import Comparison, Pair
    from timetrial.statistics.intervals import Estimate
    from timetrial.statistics.movement import Movement

_MANY = 3  # names of rows that are listed
_LONGEST = 60  # characters of a value that changed
TWO_TIMES = (
    "times of two moments are no verdict: the level of a machine changes from day to day. A ratio is of "
    "launches that were alive together, so it says more; a race says it"
)
_STYLES = {"slower": "red", "failed": "bold red", "faster": "green", "mended": "green", "not known": "yellow"}


class ComparisonTable:
    """A renderable for rich: what changed, the rows, what to know, the races."""

    def __init__(self, comparison: Comparison):
        self._comparison = comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        comparison = self._comparison
        for word, found, record in zip(
            ("old", "new"), (comparison.old, comparison.new), comparison.records, strict=True
        ):
            words = f"{word}  {near(folder_of(found))}  {record.created_at}  {record.name}"
            yield Text(words, style="bold", overflow="fold")
        changed = list(_changed(comparison))
        if not changed:
            yield Text("nothing that records know changed around them", style="dim")
        for words in changed:
            yield Text(f"  changed: {words}", overflow="fold")
        layout = Layout(("row", "old", "new", "by itself", "to its reference", ""))
        cells = map(self._line, comparison.rows)
        yield from layout.lines([Line(one[:-1], one[-1]) for one in cells], options.max_width)
        for word, names in (("old", comparison.only_old), ("new", comparison.only_new)):
            if names:
                yield Text(f"  only in {word}: {', '.join(names)}", style="dim", overflow="fold")
        for note in notes(comparison):
            yield Text(f"! {note}", style="yellow", overflow="fold")
        for name, one in comparison.settling.items():
            said = f"{one.words}\n    {one.command}" if one.command else f"no race here: {one.words}"
            yield Text(f"  to settle {name}: {said}", overflow="fold")

    def _line(self, pair: Pair) -> list[tuple[str, str]]:
        metric = self._comparison.metric
        words = str(pair.state)
        if pair.state == "not known" and pair.is_reference and pair.old.level and pair.new.level:
            words = "reference"
        elif pair.reason:
            words = f"{pair.state}: {pair.reason}"
        return [
            (pair.name, ""),
            (level_words(metric, pair.old.level), ""),
            (level_words(metric, pair.new.level), "bold"),
            (movement_words(pair.level), "" if pair.level_moved else "dim"),
            (movement_words(pair.ratio), _STYLES.get(pair.state, "dim")),
            (words, _STYLES.get(pair.state, "dim")),
        ]


def level_words(metric: str, level: Estimate | None) -> str:
    """'20.4 ms ±0.8 %'."""
    if level is None:
        return "-"
    return measured_words(METRICS[metric].unit, level)


def movement_words(moved: Movement | None) -> str:
    """'+4.8 % [+4.1, +5.5]'."""
    if moved is None:
        return "-"
    return f"{100 * moved.estimate:+.1f} % [{100 * moved.low:+.1f}, {100 * moved.high:+.1f}]"


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know."""
    old, new = comparison.records
    said = []
    if old.created_at > new.created_at:
        said.append("OLD was measured after NEW: the other order may have been meant")
    if not comparison.same_machine:
        said.append("two machines: their times are not compared, and a ratio depends on the machine too")
    else:
        said.append(TWO_TIMES)
    bases = [one for one in comparison.rows if one.is_reference and one.level_moved and one.level is not None]
    said += [
        f"{one.name}, the reference, moved by {movement_words(one.level)} itself: the machine, or what it "
        "stands on, is not what it was"
        for one in bases
    ]
    said += [
        f"{one.name}: its accuracy is {one.accuracy}, {accuracy_words(one.new.accuracy)}, and was "
        f"{accuracy_words(one.old.accuracy)}: neither interval reaches the other"
        for one in comparison.rows
        if one.accuracy and one.new.accuracy is not None and one.old.accuracy is not None
    ]
    changed = [one.name for one in comparison.rows if one.is_reference and one.changes]
    if changed and any(one.state in ("slower", "faster") for one in comparison.rows):
        said.append(f"{', '.join(changed)} changed too: a ratio may move because its reference does")
    if sum(one.ratio is not None for one in comparison.rows) > 1:
        said.append("a row counts as moved if neither interval reaches the other and Holm's correction over "
                    "all rows leaves at most 5 % for chance")  # fmt: skip
    for word, found in (("old", comparison.old), ("new", comparison.new)):
        more = found.warnings if isinstance(found, Results) else found.damaged
        said += [f"{word}: {text}" for text in more if "damaged" in text or "unfinished" in text]
    return said


def summary(comparison: Comparison) -> str:
    """'1 of 6 rows is worse, 2 are better' in a line."""
    rows = comparison.rows
    worse = sum(one.state in WORSE for one in rows)
    better = sum(one.state in ("faster", "mended") for one in rows)
    unknown = sum(one.state == "not known" for one in rows)
    return f"of {len(rows)} rows {worse} are worse, {better} better, {unknown} not known"


def _changed(comparison: Comparison) -> Iterator[str]:
    """What concerns all rows, then what concerns some."""
    for what, (old, new) in comparison.changes.items():
        yield f"{what}: {_short(old)} -> {_short(new)}"
    rows = len(comparison.rows)
    for (what, old, new), names in facts_by_row(comparison).items():
        where = f"all {rows} rows" if len(names) == rows > 1 else ", ".join(names[:_MANY])
        where += f" and {len(names) - _MANY} more" if _MANY < len(names) < rows else ""
        yield f"{what} of {where}: {_short(old)} -> {_short(new)}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
