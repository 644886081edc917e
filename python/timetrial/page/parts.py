"""What a page is made of: plain words, which the template escapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from timetrial.report.columns import Grid
from timetrial.report.detail import cut

# The styles of the terminal as classes of the page. Words say the same as every color.
_CLASSES = {
    "green": "good", "red": "bad", "bold red": "bad", "yellow": "doubt", "dim": "dim", "bold": "strong",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """Of a table. `span`: over how many columns it goes."""

    text: str
    kind: str = ""
    span: int = 1


@dataclass(frozen=True)
class Table:
    """Titles and lines; `kind` tells the template what it is of."""

    titles: list[str]
    lines: list[list[Cell]]
    kind: str = ""
    title: str = ""  # of one that is folded
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure as SVG, safe as it is, and what it shows in words."""

    svg: str
    words: str


@dataclass(frozen=True)
class Block:
    """A part of a section under a heading of its own."""

    heading: str
    words: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    plain: str = ""  # as it stands, in lines: a command, an output

    def __bool__(self) -> bool:
        return bool(self.words or self.tables or self.figures or self.plain)


@dataclass(frozen=True)
class Section:
    """One result. `notes`: what a reader must know before believing it."""

    anchor: str
    title: str
    question: str
    header: str
    answer: list[str]
    notes: list[str]
    blocks: list[Block]


def cell(text: str, style: str = "", span: int = 1) -> Cell:
    """A cell in a style of the terminal."""
    return Cell(cut(text), _CLASSES.get(style, ""), span)


def pairs(facts: Mapping[str, str], *, title: str = "", folded: bool = False) -> Table:
    """Names and values."""
    lines = [[cell(name, "dim"), cell(value)] for name, value in facts.items()]
    return Table([], lines, "pairs", title, folded)


def from_grid(grid: Grid, *, title: str = "", folded: bool = False) -> Table:
    """A table of the terminal."""
    return Table(grid.titles, [list(map(cell, row)) for row in grid.rows], "plain", title, folded)


def merged(facts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """As a dictionary: what goes on under a name that is empty is a further line of the one before."""
    found: dict[str, str] = {}
    last = ""
    for name, value in facts:
        last = name or last
        found[last] = f"{found[last]}\n{value}" if last in found else value
    return found
