"""Columns: of printed tables, and of exported ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from code_tables.entry import Entry, Table
from timetrial.exports.dictionary import BY_TABLE
from timetrial.report.titles import PROFILE_TITLES, RACE_TITLES, RUN_TITLES

EXPORTED = tuple(BY_TABLE)  # cases, launches, steps, pairs, rounds


def run_columns() -> Table:
    """Of `timetrial run`."""
    return _printed(RUN_TITLES)


def race_columns() -> Table:
    """Of `timetrial race`."""
    return _printed(RACE_TITLES)


def profile_columns() -> Table:
    """Of `timetrial profile`."""
    return _printed(PROFILE_TITLES)


def exported(table: str) -> Callable[[], Table]:
    """Of a table of to_pandas() and of CSV and Parquet files."""

    def columns() -> Table:
        entries = [
            Entry(one.name, one.meaning, (one.kind, one.unit, one.null_when))
            for one in BY_TABLE[table].values()
        ]
        return Table(("column", "type", "unit", "null when", "what it is"), entries)

    return columns


def _printed(titles: Mapping[str, str]) -> Table:
    return Table(("column", "what it is"), [Entry(name, words) for name, words in titles.items()])
