"""Lines of a table, in whatever width there is: nothing of a table is ever cut off."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.segment import Segment
from rich.text import Text

from timetrial.records.files import near

GAP = "  "
_BAD = "bold red"
_STYLES = {"unavailable": "yellow", "not measured": "yellow"}
_REASON = 30  # columns that a reason beside its row has at least; else it stands below
Cell = tuple[str, str]  # text, style


@dataclass(frozen=True)
class Line:
    """Cells; in place of those that are missing, a reason, which wraps. `section` is a heading that stands
    above the first line of several."""

    cells: Sequence[Cell]
    reason: Cell | None = None
    section: str = ""


@dataclass(frozen=True)
class Layout:
    """The columns of a table. The first `keys` say which row it is; those in `right` stand at their right."""

    titles: Sequence[str]
    keys: int = 1
    right: frozenset[int] = field(default_factory=frozenset)

    def lines(self, lines: Sequence[Line], width: int, widths: Sequence[int] | None = None) -> Iterator[Text]:
        """Side by side where they fit; else the columns in several tables, each with the keys; where these
        alone are wide, every row as a list of its own. `widths` are those of several tables alike."""
        widths = widths or self.widths(lines)
        blocks = _blocks(widths, self.keys, width)
        if len(blocks) > 1 and not self._fits(blocks, widths, width):
            yield from self._lists(lines, width)
            return
        for block in blocks:
            yield from self._block(lines, block, widths, width)

    def widths(self, lines: Iterable[Line]) -> list[int]:
        """As wide as the widest cell of each column."""
        return column_widths([list(self.titles), *([text for text, _ in line.cells] for line in lines)])

    def _fits(self, blocks: list[list[int]], widths: Sequence[int], width: int) -> bool:
        """Half of the width, at least, is for what is not a key."""
        keys = _sum(widths[: self.keys])
        return 2 * keys <= width and all(_sum([widths[one] for one in block]) <= width for block in blocks)

    def _block(
        self, lines: Sequence[Line], block: list[int], widths: Sequence[int], width: int
    ) -> Iterator[Text]:
        """A table of some columns. A reason is where the first of the missing cells would be."""
        chosen = [widths[one] for one in block]
        right = [one in self.right for one in block]
        yield aligned([(self.titles[one], "dim") for one in block], chosen, right)
        heading = ""
        for line in lines:
            reason = line.reason if min(len(line.cells), len(self.titles) - 1) in block else None
            if reason is None and len(line.cells) <= block[min(self.keys, len(block) - 1)]:
                continue
            if line.section != heading:
                heading = line.section
                yield Text(heading, style="bold cyan")
            start = aligned([line.cells[one] for one in block if one < len(line.cells)], chosen, right)
            yield from _with_reason(start, reason, width) if reason else [start]

    def _lists(self, lines: Sequence[Line], width: int) -> Iterator[Text]:
        """A row is its keys, then a line for each of its cells."""
        heading = ""
        label = min(max(len(title) for title in self.titles[self.keys :]), width // 2)
        for line in lines:
            if line.section != heading:
                heading = line.section
                yield Text(heading, style="bold cyan")
            names = [text for text, _ in line.cells[: self.keys]]
            words = [
                names[0],
                *(f"{title} {name}" for title, name in zip(self.titles[1:], names[1:], strict=False)),
            ]
            for text in textwrap.wrap(" · ".join(words), width, subsequent_indent=GAP):
                yield Text(text, style="bold")
            for title, (text, style) in zip(self.titles[self.keys :], line.cells[self.keys :], strict=False):
                if text.strip() and not (line.reason and text == "-"):
                    yield from hanging(GAP + title, text.strip(), label + 2 * len(GAP), width, style)
            if line.reason:
                title = self.titles[-1] if len(line.cells) == len(self.titles) - 1 else ""
                indent = label + 2 * len(GAP) if title else len(GAP)
                yield from hanging(
                    GAP + title if title else "", line.reason[0], indent, width, line.reason[1]
                )


class Grid:
    """A renderable for rich: words in columns. The first is a name; the last may be long, and wraps if
    `wraps`. Columns that no row fills are left out."""

    def __init__(self, titles: Sequence[str], rows: Iterable[Sequence[str]], *, wraps: bool = True):
        self.wraps = wraps
        self.titles = list(titles)
        self.rows = [list(row) for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        filled = [0, *(n for n in range(1, len(self.titles)) if any(row[n] for row in self.rows))]
        lines = []
        for row in self.rows:
            cells = [(row[column], "") for column in filled]
            last = cells.pop() if self.wraps else ("", "")
            lines.append(Line(cells, last if last[0] else None))
        for line in Layout([self.titles[column] for column in filled]).lines(lines, options.max_width):
            line.no_wrap = line.cell_len <= options.max_width  # what fits need not be measured again
            yield line


class Pairs:
    """A renderable for rich: names, and what they are; a name that is empty goes on with the one before."""

    def __init__(self, facts: Iterable[tuple[str, str]]):
        self._facts = list(facts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        label = min(max((len(name) for name, _ in self._facts), default=0), width // 3)
        dim = console.get_style("dim")
        for name, value in self._facts:
            for number, words in enumerate(value.splitlines() or [""]):
                lead = name if number == 0 else ""
                # Segments: hundreds of lines that fit already need not be measured again by rich.
                for start, line in _hanging(lead, words, label + len(GAP), width):
                    yield Segment(start, dim)
                    yield Segment(line)
                    yield Segment.line()


def _blocks(widths: Sequence[int], keys: int, width: int) -> list[list[int]]:
    """Columns that fit beside the keys, in order."""
    first = list(range(keys))
    blocks = [first]
    for column in range(keys, len(widths)):
        if len(blocks[-1]) > keys and _sum([widths[one] for one in [*blocks[-1], column]]) > width:
            blocks.append(first)
        blocks[-1] = [*blocks[-1], column]
    return blocks


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _with_reason(start: Text, reason: Cell, width: int) -> Iterator[Text]:
    """Beside the row, wrapped under itself; below it where there is no room."""
    indent = len(start.plain) + len(GAP)
    if width - indent < _REASON:
        yield start
        yield from hanging("", reason[0], 2 * len(GAP), width, reason[1])
        return
    wrapped = textwrap.wrap(reason[0], width - indent) or [""]
    yield start.append(GAP).append(wrapped[0], style=reason[1])
    for more in wrapped[1:]:
        yield Text(" " * indent + more, style=reason[1])


def hanging(lead: str, words: str, indent: int, width: int, style: str = "") -> Iterator[Text]:
    """Words in lines that fit, beside what leads to them; below it where that is wider than the indent."""
    for start, line in _hanging(lead, words, indent, width):
        yield Text.assemble((start, "dim"), (line, style))


def _hanging(lead: str, words: str, indent: int, width: int) -> Iterator[tuple[str, str]]:
    """Lines of two parts: what leads to the words, or the room that it would take, and some of the words."""
    indent = min(indent, width // 2)
    if len(lead) + 1 > indent and lead:
        for start in textwrap.wrap(lead, width):
            yield start, ""
        lead = ""
    for line in _wrapped(words, width - indent):
        yield lead.ljust(indent), line
        lead = ""


def _wrapped(words: str, width: int) -> list[str]:
    """Lines of at most that width, and at least one."""
    if len(words) <= width and words.isprintable():
        return [words]
    return textwrap.wrap(words, width, break_on_hyphens=False) or [""]


def heading(words: str, width: int) -> Rule | Text:
    """A rule behind the words; where there is no room for one, the words."""
    if len(words) + 2 > width:
        return Text(words, style="bold", overflow="fold")
    return Rule(Text(words), align="left", style="dim")


def outcome_style(outcome: str) -> str:
    """The color of a row that has no numbers."""
    return _STYLES.get(outcome, _BAD)


def column_widths(lines: list[list[str]]) -> list[int]:
    """As wide as the widest cell of each column; lines may be of different lengths."""
    columns = max(len(line) for line in lines)
    return [max(len(line[column]) for line in lines if column < len(line)) for column in range(columns)]


def aligned(cells: Sequence[Cell], widths: Sequence[int], right: Sequence[bool]) -> Text:
    """One line of (text, style): each cell padded on its side, but nothing behind the last."""
    text = Text(overflow="fold")
    for position, (cell, style) in enumerate(cells):
        last = position == len(widths) - 1
        padded = cell.rjust(widths[position]) if right[position] else cell.ljust(widths[position])
        text.append(padded if right[position] or not last else cell, style=style)
        text.append("" if position == len(cells) - 1 else GAP)
    text.rstrip()
    return text


def closing_lines(path: Path, again: str, width: int) -> Text:
    """Where the records are, and how to measure the same again."""
    records, command = f"  records: {near(path)}", f"again: {again}"
    fits = len(records) + len(command) + 4 <= width
    return Text(f"{records}    {command}" if fits else f"{records}\n  {command}", style="dim")
