"""Metrics, outcomes, and the fields of JSON."""

from __future__ import annotations

from collections.abc import Mapping

from code_tables.entry import Entry, Table
from timetrial.exports.dictionary import BY_TABLE
from timetrial.records.meaning import OUTCOME_WORDS, RACE_FIELDS, RUN_FIELDS
from timetrial.records.metric import METRICS, RACED

# In JSON the columns of `cases` are fields of a case, those about steps one level deeper.
_OF_STEPS = ("mean_ns", "spread_", "outliers_", "levels_apart")


def metrics() -> Table:
    """That can be raced."""
    entries = [
        Entry(name, f"{METRICS[name].definition}; {METRICS[name].good} is better", (METRICS[name].unit,))
        for name in RACED
    ]
    return Table(("metric", "unit", "what it is"), entries)


def outcomes() -> Table:
    """Of a launch, and of a row."""
    return _table({str(name): words for name, words in OUTCOME_WORDS.items()}, "outcome")


def json_run() -> Table:
    """Of `timetrial run --json` and `Results.to_json()`."""
    return _table({**RUN_FIELDS, **_from_columns()}, "field")


def json_race() -> Table:
    """Of `timetrial race --json` and `Race.to_json()`."""
    return _table(RACE_FIELDS, "field")


def _from_columns() -> dict[str, str]:
    """The columns of the exported table of cases that the JSON has too, with their units."""
    fields = {}
    for column in BY_TABLE["cases"].values():
        if column.name.endswith(("_low", "_high")):
            continue  # an interval is one field
        of_steps = column.name.startswith(_OF_STEPS) or (column.name[0] == "p" and column.name[1].isdigit())
        path = f"cases[].steps.{column.name}" if of_steps else f"cases[].{column.name}"
        unit = f" [{column.unit}]" if column.unit not in ("", "1", "steps") else ""
        if column.measured or column.name in ("reference", "outcome", "stop_reason"):
            fields[path] = f"{column.meaning}{unit}; null: {column.null_when}"
    for name in ("steps", "steps_effective"):  # there they are `n` and `n_effective`
        fields.pop(f"cases[].{name}")
    return fields


def _table(words: Mapping[str, str], title: str) -> Table:
    return Table((title, "what it is"), [Entry(name, said) for name, said in words.items()])
