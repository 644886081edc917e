"""Columns on demand: what each says of records made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from timetrial.errors import InputError
from timetrial.records.model import Counter, Memory, MemoryAt
from timetrial.report.detail import counter_facts
from timetrial.report.more_columns import (
    MORE_COLUMNS,
    NOT_COUNTED,
    chosen_columns,
    column_names,
    why_empty,
)


def row(*cpu_ns: int, counters: Sequence[Counter] = (), **witnesses: float) -> Any:
    at = MemoryAt(phase="steady", resident_bytes=9 << 20, anonymous_bytes=4 << 20, shared_bytes=3 << 20)
    record = SimpleNamespace(
        purpose="speed",
        outcome="ok",
        witnesses=witnesses,
        counters=counters,
        threads=[SimpleNamespace(cpu_ns=value) for value in cpu_ns],
        memory=Memory(phases=[at]),
    )
    return SimpleNamespace(
        launches=[SimpleNamespace(record=record)],
        cpus_used=witnesses.get("cpus_used"),
        resident_peak_bytes=9 << 20,
        case=SimpleNamespace(on_paper_bytes=2 << 20),
    )


BOTH = [Counter(name="instructions", per_step=5e6), Counter(name="cycles", per_step=2e6)]


@pytest.mark.parametrize(
    ("name", "one", "cell"),
    [
        ("cpus", row(cpus_used=1.5), "1.50"),
        ("waiting", row(cpus_used=1.5, runnable_cpus=2.25), "0.75"),
        ("busiest", row(30, 30, 40), "40 %"),
        ("working", row(50, 50, 0, 0), "2.0"),
        ("working", row(100), "1.0"),
        ("faults", row(page_faults_per_step=2373.0), "2,373.0"),
        ("major_faults", row(major_faults_per_step=0.5), "0.5"),
        ("sleeps", row(voluntary_switches_per_step=3.0), "3.0"),
        ("preempted", row(involuntary_switches_per_step=0.25), "0.2"),
        ("migrations", row(migrations_per_step=0.125), "0.12"),
        ("throttled", row(throttled_s=0.25, wall_s=2.0), "12.5 %"),
        ("shared", row(), "3 MB"),
        ("resident", row(), "9 MB"),
        ("on_paper", row(), "2 MB"),
        ("instructions", row(counters=[Counter(name="instructions", per_step=3.21e9)]), "3,210.0 M"),
        ("ipc", row(counters=BOTH), "2.50"),
        ("energy", row(counters=[Counter(name="package_energy_j", per_step=0.0123)]), "12.3 mJ"),
        ("cpu_time", row(counters=[Counter(name="task_clock_ns", per_step=1.5e6)]), "1.5 ms"),
    ],
)
def test_a_cell(name: str, one: Any, cell: str) -> None:
    assert MORE_COLUMNS[name].cell(one) == cell


@pytest.mark.parametrize(
    "name", ["cpus", "waiting", "busiest", "working", "faults", "throttled", "migrations", "cycles", "ipc"]
)
def test_what_nobody_counted_is_empty_and_not_0(name: str) -> None:
    assert MORE_COLUMNS[name].cell(row()) == ""


def test_columns_are_found_by_name() -> None:
    assert [one.title for one in chosen_columns(column_names("faults, cpus,faults"))] == ["faults", "CPUs"]
    assert chosen_columns(column_names(None)) == []
    with pytest.raises(InputError, match=r"There is no column 'fault'. Did you mean 'faults'\?"):
        chosen_columns(["fault"])


def test_a_column_that_nobody_fills_says_why() -> None:
    no = [Counter(name=name, reason="ENOENT: no counter") for name in ("instructions", "cycles")]
    columns = chosen_columns(["instructions", "faults", "ipc", "energy"])
    assert why_empty(columns, [row(counters=no)]) == [
        "instructions, IPC: unavailable: ENOENT: no counter",
        f"energy: {NOT_COUNTED}",
    ]
    assert why_empty(columns[:1], [row(counters=no), row(counters=BOTH)]) == []


def test_show_has_what_was_counted_and_why_not() -> None:
    no = [Counter(name=name, reason="EACCES: a remedy") for name in ("instructions", "cycles")]
    one = row(counters=[*no, Counter(name="page_faults", per_step=12.5)])
    assert dict(counter_facts(one.launches)) == {
        "counted in a step": "page_faults 12.5",
        "not counted": "instructions, cycles: EACCES: a remedy",
    }
    assert dict(counter_facts(row().launches)) == {}
