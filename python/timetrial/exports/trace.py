"""Curves and phases of launches as a trace: the JSON that Chrome and Perfetto read ("Trace Event Format").

A launch is a process, its phases are slices, what it uses are counters; times are microseconds since the
first launch began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timetrial.analysis.resources import Span, spans_of, thread_cores
from timetrial.errors import InputError
from timetrial.records.samples import read_thread_samples
from timetrial.results.names import names_of
from timetrial.results.results import LaunchFiles, Results

if TYPE_CHECKING:
    from timetrial.analysis.resources import Curves
    from timetrial.results.race import Race

Event = dict[str, Any]
PHASES = 0  # the thread that has the phases
_MB = float(1 << 20)


def trace_of(found: Results | Race) -> dict[str, Any]:
    """Of every launch; those that nobody looked at have phases and no counters. InputError: it is a race."""
    if not isinstance(found, Results):
        raise InputError("A race has no curves: perfetto is a format of `timetrial run`'s results.")
    names = names_of(found.whole.experiment.cases)
    spans = [spans_of(one.record, one.steps()) for one in found.launches]
    zero_ns = min((one[0].begin_ns for one in spans if one), default=0)
    events: list[Event] = []
    for number, files in enumerate(found.launches, start=1):
        title = f"{names[files.record.case]} · {files.record.purpose} {files.record.id}"
        events.append(_named("process_name", title, number, PHASES))
        events.append(_named("thread_name", "phases", number, PHASES))
        events += [_phase(one, number, zero_ns) for one in spans[number - 1]]
        curves = files.curves()
        if curves is not None:
            events += _counters(curves, number, zero_ns)
            events += _threads(files, number, zero_ns)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _named(kind: str, name: str, process: int, thread: int) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _phase(span: Span, process: int, zero_ns: int) -> Event:
    return {
        "ph": "X",
        "name": span.name,
        "cat": "phase",
        "pid": process,
        "tid": PHASES,
        "ts": (span.begin_ns - zero_ns) / 1e3,
        "dur": (span.end_ns - span.begin_ns) / 1e3,
    }


def _counters(curves: Curves, process: int, zero_ns: int) -> Iterator[Event]:
    """Each look has a point of every counter; those of memory are stacked by the viewer."""
    for place, seconds in enumerate(curves.seconds):
        at = (curves.begin_ns - zero_ns) / 1e3 + float(seconds) * 1e6
        private = float(curves.private_bytes[place])
        others = float(curves.whole_bytes[place]) - private
        for name, values in {
            "memory [MB]": {"private": private / _MB, "shared and files": others / _MB},
            "processors": {"used": float(curves.cores[place])},
            "waiting threads": {"waiting": float(curves.waiting[place])},
            "page faults per second": {"faults": float(curves.faults_per_s[place])},
        }.items():
            yield _counter(name, values, process, PHASES, at)


def _threads(files: LaunchFiles, process: int, zero_ns: int) -> Iterator[Event]:
    for thread in read_thread_samples(files.folder):
        name = f"processors of {thread.name or 'thread'} {thread.tid}"
        for time_ns, cores in zip(thread.time_ns, thread_cores(thread), strict=True):
            yield _counter(name, {"used": float(cores)}, process, thread.tid, (int(time_ns) - zero_ns) / 1e3)


def _counter(name: str, values: dict[str, float], process: int, thread: int, at_us: float) -> Event:
    return {"ph": "C", "name": name, "pid": process, "tid": thread, "ts": at_us, "args": values}
