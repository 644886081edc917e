"""Bencher Metric Format: {name: {measure: {"value", "lower_value", "upper_value"}}}."""

from __future__ import annotations

from typing import Any

from timetrial.exports.lines import Line, Sheet
from timetrial.records.metric import METRICS
from timetrial.report.proof_words import UNPROVEN
from timetrial.results.names import LONGEST
from timetrial.statistics.intervals import Estimate

_MARK = f" ({UNPROVEN})"


def document(sheet: Sheet) -> dict[str, Any]:
    """Lines with numbers. The format has no place for remarks, so an unproven line says so in its name: it is
    another series there, and an alarm compares proven with proven."""
    return {
        _name(line): {METRICS[metric].slug: _metric(value) for metric, value in line.values.items()}
        for line in sheet.lines
        if line.failure is None
    }


def _name(line: Line) -> str:
    if line.proven:
        return line.name
    room = LONGEST - len(_MARK)
    return line.name.encode()[:room].decode(errors="ignore") + _MARK


def _metric(value: Estimate) -> dict[str, float]:
    """Without bounds where there is no interval."""
    found = {"value": value.estimate}
    if value.low is not None and value.high is not None:
        found |= {"lower_value": value.low, "upper_value": value.high}
    return found
