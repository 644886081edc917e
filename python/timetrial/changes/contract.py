"""The JSON of `timetrial compare --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from timetrial.changes.comparison import folder_of
from timetrial.results.results import Results

if TYPE_CHECKING:
    from timetrial.changes.comparison import Comparison, Pair
    from timetrial.changes.findings import Finding
    from timetrial.statistics.intervals import Estimate

SCHEMA_VERSION = 1


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Fractions are new over old minus 1. Absent numbers are null."""
    sides = {}
    for word, found, record in zip(
        ("old", "new"), (comparison.old, comparison.new), comparison.records, strict=True
    ):
        sides[word] = {
            "id": record.id,
            "name": record.name,
            "created_at": record.created_at,
            "timetrial_version": record.timetrial_version,
            "records": str(folder_of(found)),
            "again": record.again,
        }
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "run" if isinstance(comparison.new, Results) else "race",
        "metric": comparison.metric,
        **sides,
        "same_machine": comparison.same_machine,
        "changes": _changes(comparison.changes),
        "rows": [_row(comparison, one) for one in comparison.rows],
        "only_old": comparison.only_old,
        "only_new": comparison.only_new,
        "exit_code": comparison.exit_code,
    }


def _row(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    settling = comparison.settling.get(pair.name)
    return {
        "name": pair.name,
        "axes": pair.new.case.axes,
        "state": pair.state,
        "reason": pair.reason,
        "accuracy_moved": pair.accuracy,
        "reference": pair.reference,
        "old": _finding(pair.old),
        "new": _finding(pair.new),
        "ratio_moved": None if pair.ratio is None else asdict(pair.ratio),
        "level_moved": None
        if pair.level is None
        else {**asdict(pair.level), "beyond_chance": pair.level_moved},
        "changes": _changes(pair.changes),
        "race": None if settling is None else asdict(settling),
    }


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "case": one.case.id,
        "outcome": one.outcome,
        "verdict": one.verdict,
        "accuracy": _interval(one.accuracy),
        "level": _interval(one.level),
        "ratio": _interval(one.ratio),
    }


def _interval(one: Estimate | None) -> dict[str, float | None] | None:
    return None if one is None else {"estimate": one.estimate, "low": one.low, "high": one.high}


def _changes(changes: dict[str, tuple[str, str]]) -> list[dict[str, str]]:
    return [{"what": what, "old": old, "new": new} for what, (old, new) in changes.items()]
