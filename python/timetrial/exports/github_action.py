"""github-action-benchmark, tool `customSmallerIsBetter`: [{name, unit, value, range, extra}]."""

from __future__ import annotations

from typing import Any

from timetrial.exports.lines import Line, Sheet
from timetrial.exports.times import time_of
from timetrial.report.proof_words import UNPROVEN


def document(sheet: Sheet) -> list[dict[str, Any]]:
    """Lines with numbers: their time in ns, or the memory that was raced in bytes."""
    return [_entry(line, sheet) for line in sheet.lines if line.failure is None]


def _entry(line: Line, sheet: Sheet) -> dict[str, Any]:
    time = time_of(line)
    if time is not None:
        value, unit = time[0], "ns/sample" if time[1] else "ns"
    else:
        value, unit = line.values["peak_memory"], "bytes"
    entry: dict[str, Any] = {"name": line.name, "unit": unit, "value": value.estimate}
    if value.low is not None and value.high is not None:
        entry["range"] = f"[{value.low!r}, {value.high!r}]"
    extra = [f"{value.in_words()}", "proven" if line.proven else UNPROVEN]
    extra += [line.remark] if line.remark else []
    extra.append(f"record {sheet.record.id}, timetrial {sheet.record.timetrial_version}")
    entry["extra"] = "\n".join(extra)
    return entry
