"""What the harness itself takes: time to ready, memory, the parent's CPU time, an empty step in Python."""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from adapter_cost import adapter_figures
from figures import Figure

from timetrial.analysis.steps import PLAIN
from timetrial.cases.case import Case, Workload
from timetrial.launch import LaunchPlan, Measure, run_launch
from timetrial.launch.segments import SampleFiles
from timetrial.processes import contender_process
from timetrial.records.model import LaunchRecord
from timetrial.statistics.stopping import StopRule
from timetrial.workloads import prepare

MEGABYTE = 1e6
WORKLOAD = Workload(
    "mlp", "synthetic", 64, {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.0}
)


def contender_figures() -> list[Figure]:
    """From launches of `null` (the harness alone) and of `eigen` (a contender that works)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        quick = Measure(min_ns=60_000_000, budget_ns=60_000_000, detailed_steps=0)
        starts = [_launch("null", quick, root / f"start{i}") for i in range(15)]
        ready_ms = min(_phase(record, "build") - _phase(record, "exec") for record in starts) / 1e6
        before_backend = min(_rss(record, "start") for record in starts) / MEGABYTE
        long_null = _launch("null", _exactly(4_000_000_000, max_steps=3_000_000), root / "null")
        return [
            Figure.at_most("native contender: exec to ready", 10, ready_ms, "ms"),
            Figure.at_most("native contender: memory before its backend", 5, before_backend, "MB"),
            Figure.at_most(
                "memory charged per million null steps", 1, _memory_per_million_steps(long_null), "MB", 3
            ),
            Figure.at_most("checks of a launch of `null`: events and samples", 2, _checks_ms(root), "ms", 2),
            Figure.at_most("parent's CPU time while a segment runs", 0.5, _parent_percent(root), "%", 2),
            *adapter_figures(root),
        ]


def _launch(backend: str, measure: Measure, folder: Path, **settings: str) -> LaunchRecord:
    case = Case(backend, WORKLOAD, settings={"threads": "1", **settings})
    record = run_launch(
        LaunchPlan(case, prepare(WORKLOAD, seed=1, epochs=1), "speed", folder, measure=measure)
    )
    if record.outcome != "ok":
        raise SystemExit(f"{backend}: {record.outcome}: {record.reason}")
    return record


def _phase(record: LaunchRecord, name: str) -> int:
    return next(phase.ns for phase in record.phases if phase.name == name)


def _rss(record: LaunchRecord, name: str) -> int:
    return next(phase.rss_bytes or 0 for phase in record.phases if phase.name == name)


def _memory_per_million_steps(record: LaunchRecord) -> float:
    """Growth of resident memory from the first to the last full segment, in MB."""
    full = [one for one in record.segments if one.kind in PLAIN and one.rss_bytes is not None]
    steps = sum(segment.steps for segment in full[1:])
    growth = (full[-1].rss_bytes or 0) - (full[0].rss_bytes or 0)
    return growth / MEGABYTE / (steps / 1e6)


def _exactly(plain_ns: int, max_steps: int = 1_000_000) -> Measure:
    """So long, and asked as often as in a run whether it is enough: no median is ever known to 0 %."""
    return Measure(rule=StopRule(0.0), budget_ns=plain_ns, max_steps=max_steps, detailed_steps=0)


def _parent_percent(root: Path) -> float:
    """Of a long launch less a short one, so that starting and ending a launch do not count."""
    cost = []
    _launch("eigen", _exactly(100_000_000), root / "first")  # what is imported late is imported now
    for name, plain_ns in (("short", 1_100_000_000), ("long", 6_100_000_000)):
        wall, cpu = time.perf_counter(), time.process_time()
        _launch("eigen", _exactly(plain_ns), root / name)
        cost.append((time.perf_counter() - wall, time.process_time() - cpu))
    (short_wall, short_cpu), (long_wall, long_cpu) = cost
    return 100 * (long_cpu - short_cpu) / (long_wall - short_wall)


def _checks_ms(root: Path) -> float:
    """What a launch spends on believing nobody: events are validated, samples synced and looked at."""
    spent = 0.0

    def timed(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent += time.perf_counter() - began

        return call

    found = []
    checks = [(contender_process, "read_event"), (SampleFiles, "close")]
    with ExitStack() as stack:
        for module, name in checks:
            stack.enter_context(patch.object(module, name, timed(getattr(module, name))))
        for number in range(21):
            spent = 0.0
            # Steps of 100 us: a million empty ones would be 16 MB of samples to sync.
            _launch("null", _exactly(60_000_000), root / f"checks{number}", **{"null.step_us": "100"})
            found.append(1000 * spent)
    return statistics.median(found[1:])
