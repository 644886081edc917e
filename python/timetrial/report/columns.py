"""Lines of a table: cells padded to their columns, and what closes every table."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from timetrial.records.files import near

GAP = "  "
_BAD = "bold red"
_STYLES = {"unavailable": "yellow", "not measured": "yellow"}


def outcome_style(outcome: str) -> str:
    """The color of a row that has no numbers."""
    return _STYLES.get(outcome, _BAD)


def column_widths(lines: list[list[str]]) -> list[int]:
    """As wide as the widest cell of each column; lines may be of different lengths."""
    columns = max(len(line) for line in lines)
    return [max(len(line[column]) for line in lines if column < len(line)) for column in range(columns)]


def aligned(cells: list[tuple[str, str]], widths: list[int], right: list[bool]) -> Text:
    """One line of (text, style): each cell padded on its side, but nothing behind the last."""
    text = Text(no_wrap=True, overflow="ellipsis")
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
