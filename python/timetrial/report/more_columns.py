"""Columns of the table of `run` that are shown on demand: what a case used while steady."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from timetrial.analysis import used
from timetrial.analysis.summary import Row
from timetrial.errors import InputError, nearest
from timetrial.records.meaning import COUNTER_WORDS
from timetrial.report.numbers import memory

NOT_COUNTED = "not counted: resource_launches=1 counts beside timed launches, counters=on in them"


@dataclass(frozen=True)
class MoreColumn:
    """`cell`: its number as words; "" where no record tells. `counter`: the one that it needs, of those that
    not every machine has."""

    title: str
    words: str
    cell: Callable[[Row], str]
    counter: str = ""


def _number(
    reading: used.Reading, form: str = ".2f", scale: float = 1.0, unit: str = ""
) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = used.over_launches(row.launches, reading)
        return "" if value is None else f"{scale * value:{form}}{unit}"

    return cell


def _bytes(of: Callable[[Row], float | None]) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = of(row)
        return "" if value is None else memory(value)

    return cell


def _counter(
    title: str, name: str, scale: float = 1.0, unit: str = "", form: str = ",.1f", also: str = ""
) -> MoreColumn:
    """Of a step: a counter, in the unit given; `also`: what to say besides."""

    def cell(row: Row) -> str:
        value = used.counted(row.launches, name)
        return "" if value is None else f"{scale * value:{form}}{unit}"

    return MoreColumn(title, f"{COUNTER_WORDS[name]}, of a step{also}", cell, name)


def _instructions_per_cycle(row: Row) -> str:
    value = used.instructions_per_cycle(row.launches)
    return "" if value is None else f"{value:.2f}"


def _computed_steps(row: Row) -> str:
    steps = row.sequences and row.sequences.steps
    return f"{steps.computed / steps.useful:.2f}" if steps and steps.computed else ""


def _useful_steps(row: Row) -> str:
    found = row.sequences and row.sequences.useful_per_s
    return f"{found.estimate:,.0f}" if found else ""


MORE_COLUMNS: dict[str, MoreColumn] = {
    "useful_steps": MoreColumn(
        "useful steps/s",
        "steps of sequences that count, those behind an end left out, over the step time",
        _useful_steps,
    ),
    "computed_steps": MoreColumn(
        "computed",
        "steps of sequences that were computed for each that counts: 1.00 where nothing is behind an end",
        _computed_steps,
    ),
    "cpus": MoreColumn(
        "CPUs",
        "CPU time over wall time while steady",
        lambda row: "" if row.cpus_used is None else f"{row.cpus_used:.2f}",
    ),
    "waiting": MoreColumn(
        "waiting",
        "threads that were ready and had no processor, on average",
        _number(used.waiting_threads),
    ),
    "busiest": MoreColumn(
        "busiest",
        "share of the CPU time that its busiest thread had: 50 % where two share the work",
        _number(used.busiest_share, ".0f", 100, " %"),
    ),
    "working": MoreColumn(
        "working",
        "as how many threads of equal work its threads worked: (sum of CPU time)² over the sum of squares",
        _number(used.working_threads, ".1f"),
    ),
    "faults": MoreColumn(
        "faults", "minor page faults of a step", _number(used.witness("page_faults_per_step"), ",.1f")
    ),
    "major_faults": MoreColumn(
        "major faults",
        "page faults of a step that had to read",
        _number(used.witness("major_faults_per_step"), ",.1f"),
    ),
    "sleeps": MoreColumn(
        "sleeps",
        "how often in a step a thread gave its processor away by itself",
        _number(used.witness("voluntary_switches_per_step"), ",.1f"),
    ),
    "preempted": MoreColumn(
        "preempted",
        "how often in a step a thread lost its processor to others",
        _number(used.witness("involuntary_switches_per_step"), ",.1f"),
    ),
    "migrations": MoreColumn(
        "migrations",
        "how often in a step a thread went on on another processor",
        _number(used.witness("migrations_per_step"), ",.2f"),
    ),
    "throttled": MoreColumn(
        "throttled",
        "share of the steady part in which a quota of its control group stopped it",
        _number(used.throttled_share, ".1f", 100, " %"),
    ),
    "shared": MoreColumn(
        "shared",
        "shared memory at the end of the steady part; not in `memory`",
        _bytes(lambda row: used.over_launches(row.launches, used.shared_bytes)),
    ),
    "resident": MoreColumn(
        "resident",
        "the peak while steady with shared memory and pages of mapped files",
        _bytes(lambda row: row.resident_peak_bytes),
    ),
    "on_paper": MoreColumn(
        "on paper",
        "weights, gradients, states and activations: the least that a step needs",
        _bytes(lambda row: row.case.on_paper_bytes),
    ),
    "instructions": _counter("instructions", "instructions", 1e-6, " M"),
    "cycles": _counter("cycles", "cycles", 1e-6, " M"),
    "ipc": MoreColumn(
        "IPC", "instructions in a clock cycle, in user mode", _instructions_per_cycle, "cycles"
    ),
    "cache_misses": _counter("cache misses", "cache_misses", 1e-3, " k"),
    "branch_misses": _counter("branch misses", "branch_misses", 1e-3, " k"),
    "tlb_misses": _counter("TLB misses", "tlb_misses", 1e-3, " k"),
    "cpu_time": _counter("CPU time", "task_clock_ns", 1e-6, " ms", ",.3g", ", all threads added up"),
    "energy": _counter("energy", "package_energy_j", 1e3, " mJ", ",.3g"),
    "memory_energy": _counter("memory energy", "memory_energy_j", 1e3, " mJ", ",.3g"),
}


def chosen_columns(names: Iterable[str]) -> list[MoreColumn]:
    """In the order given. InputError: there is none of that name."""
    found = {}
    for name in names:
        if name not in MORE_COLUMNS:
            raise InputError(f"There is no column '{name}'.{nearest(name, MORE_COLUMNS)}")
        found[name] = MORE_COLUMNS[name]
    return list(found.values())


def column_names(words: str | None) -> list[str]:
    """Of a comma list. InputError: there is none of a name."""
    names = [word.strip() for word in (words or "").split(",") if word.strip()]
    chosen_columns(names)
    return names


def why_empty(columns: Sequence[MoreColumn], rows: Sequence[Row]) -> list[str]:
    """Of columns of counters that no row fills: why, each reason once."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        if not column.counter or any(column.cell(row) for row in rows):
            continue
        said = [one.reason for row in rows for one in used.counters_of(row.launches, column.counter)]
        why = next((f"unavailable: {one}" for one in said if one), NOT_COUNTED)
        reasons.setdefault(why, []).append(column.title)
    return [f"{', '.join(titles)}: {why}" for why, titles in reasons.items()]
