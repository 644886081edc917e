"""What the columns of exported tables are: one line per table and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from timetrial.exports.columns import COLUMNS, Column

# A table's columns that are fixed; those of further axes stand among them.
BY_TABLE: dict[str, dict[str, Column]] = {}
for _one in COLUMNS:
    for _table in _one.tables:
        BY_TABLE.setdefault(_table, {})[_one.name] = _one


def column_of(table: str, name: str) -> Column:
    """A column; one that is not fixed is an axis of the experiment."""
    known = BY_TABLE[table].get(name)
    if known is not None:
        return known
    return Column((table,), name, "text", "", f"axis of the experiment: {name} as asked", "not asked")


def dictionary(tables: Mapping[str, Iterable[str]]) -> list[dict[str, str]]:
    """Table -> its columns, as lines of dictionary.csv."""
    return [_line(table, column_of(table, name)) for table, names in tables.items() for name in names]


def _line(table: str, column: Column) -> dict[str, str]:
    return {
        "table": table,
        "column": column.name,
        "type": column.kind,
        "unit": column.unit,
        "meaning": column.meaning,
        "null_when": column.null_when,
    }
