"""The JSON of Google Benchmark: {"context", "benchmarks"}, times in ns."""

from __future__ import annotations

from typing import Any

from timetrial.errors import InputError
from timetrial.exports.lines import Line, Sheet
from timetrial.exports.times import time_of
from timetrial.report.proof_words import UNPROVEN


def document(sheet: Sheet) -> dict[str, Any]:
    """Every line, failed ones as errors. InputError: memory was raced, and each of these has a time."""
    if any("step_time" not in line.values and "peak_memory" in line.values for line in sheet.lines):
        raise InputError(
            "This race compared peak_memory, and google-benchmark has times only. "
            "Export it as bencher or github-action."
        )
    return {
        "context": _context(sheet),
        "benchmarks": [_entry(line, number) for number, line in enumerate(sheet.lines)],
    }


def _context(sheet: Sheet) -> dict[str, Any]:
    """Without the host's name: records go to places where it is nobody's business."""
    record, machine = sheet.record, sheet.record.machine
    facts = {
        "date": record.created_at,
        "num_cpus": machine.get("cpus"),
        "mhz_per_cpu": round(sheet.frequency_hz / 1e6) if sheet.frequency_hz else None,
        "cpu_model": machine.get("cpu_model") or machine.get("cpu"),
        "library_build_type": "release",
        "json_schema_version": 1,
        "timetrial_version": record.timetrial_version,
        "timetrial_record": record.id,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _entry(line: Line, number: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": line.name,
        "family_index": number,
        "per_family_instance_index": 0,
        "run_name": line.name,
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
    }
    if line.threads is not None:
        entry["threads"] = line.threads
    time = time_of(line)
    if time is None:
        label = "" if line.proven else UNPROVEN
        entry |= {"error_occurred": True, "error_message": line.failure, "time_unit": "ns"}
        # Google's compare.py ends with an error at an iteration without times, and has them as 0 itself.
        entry |= {"run_type": "aggregate", "aggregate_name": "failed", "aggregate_unit": "time"}
    else:
        value, per_sample = time
        entry |= {"iterations": line.steps, "real_time": value.estimate}
        if line.cpus_used is not None:
            entry["cpu_time"] = value.estimate * line.cpus_used
        entry["time_unit"] = "ns"
        entry |= _counters(line, value.low, value.high)
        words = ["" if line.proven else UNPROVEN, line.remark, "time of a sample" if per_sample else ""]
        label = ", ".join(word for word in words if word)
    return {**entry, "label": label} if label else entry


def _counters(line: Line, low: float | None, high: float | None) -> dict[str, float]:
    """Numbers of ours beside those of the format; absent where they are not known."""
    speed, memory = line.values.get("samples_per_s"), line.values.get("peak_memory")
    found: dict[str, float | None] = {
        "items_per_second": speed.estimate if speed else None,
        "real_time_low": low,
        "real_time_high": high,
        "launches": line.launches,
        "peak_memory_bytes": memory.estimate if memory else None,
    }
    return {name: value for name, value in found.items() if value is not None}
