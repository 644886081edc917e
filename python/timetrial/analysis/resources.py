"""What a launch used along its time: curves from the supervisor's looks, and the spans of its phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from timetrial.analysis.steps import Steps
from timetrial.records.model import LaunchRecord, SegmentKind
from timetrial.records.samples import Samples, ThreadSamples

Floats = npt.NDArray[np.float64]
_WORDS: Mapping[SegmentKind, str] = {"first": "first step", "warmup": "warm-up", "train": "training"}
ANCHORS = ("start", "import", "build", "first step")  # what launches of a case have in common, in this order


@dataclass(frozen=True)
class Span:
    """A part of a launch, on CLOCK_MONOTONIC."""

    name: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Curves:
    """One launch; a number for each look, at `seconds` since the program was started."""

    begin_ns: int  # CLOCK_MONOTONIC, when it was started
    seconds: Floats  # of each look
    private_bytes: Floats  # of all processes, backed by no file
    whole_bytes: Floats  # with shared memory and pages of mapped files
    peak_bytes: Floats  # by the kernel's high-water mark, of all that was resident
    cores: Floats  # processors used since the look before
    waiting: Floats  # threads that waited for a processor since then, on average
    faults_per_s: Floats  # page faults since the look before
    own_cores: float  # used by the looking itself
    spans: tuple[Span, ...] = ()  # its phases

    def at(self, ns: int) -> float:
        """Seconds since the start."""
        return (ns - self.begin_ns) / 1e9

    @property
    def anchors(self) -> dict[str, float]:
        """Where the phases that every launch has end, and the last look."""
        ends = {one.name: self.at(one.end_ns) for one in self.spans if one.name in ANCHORS}
        return {**ends, "end": float(self.seconds[-1])}


def curves_of(record: LaunchRecord, steps: Steps, samples: Samples) -> Curves | None:
    """None: too few looks for a curve."""
    if len(samples) < 2:
        return None
    times = samples["time_ns"]
    spans = spans_of(record, steps)
    begin_ns = min(int(times[0]), spans[0].begin_ns if spans else int(times[0]))
    whole = samples["anonymous_bytes"] + samples["shared_bytes"] + samples["file_bytes"]
    return Curves(
        begin_ns=begin_ns,
        seconds=(times - begin_ns) / 1e9,
        private_bytes=samples["anonymous_bytes"].astype(np.float64),
        whole_bytes=whole.astype(np.float64),
        peak_bytes=np.maximum.accumulate(samples["peak_bytes"]).astype(np.float64),
        cores=rates(times, samples["cpu_ns"]) / 1e9,
        waiting=rates(times, samples["wait_ns"]) / 1e9,
        faults_per_s=rates(times, samples["minor_faults"] + samples["major_faults"]),
        own_cores=float(np.ptp(samples["own_cpu_ns"])) / float(np.ptp(times)),
        spans=spans,
    )


def thread_cores(thread: ThreadSamples) -> Floats:
    """Processors that a thread used since its line before; of its first line 0."""
    return rates(thread.time_ns, thread.cpu_ns) / 1e9


def rates(time_ns: npt.NDArray[np.int64], counter: npt.NDArray[np.int64]) -> Floats:
    """By how much a counter has grown in a second since the look before; of the first look 0."""
    grown, took_s = np.diff(counter, prepend=counter[:1]), np.diff(time_ns, prepend=time_ns[:1]) / 1e9
    return np.divide(grown, took_s, out=np.zeros(len(counter)), where=took_s > 0)


def spans_of(record: LaunchRecord, steps: Steps) -> tuple[Span, ...]:
    """In order: phases up to `ready`, runs of steps of one kind, evaluations."""
    found = [Span(after.name, before.ns, after.ns) for before, after in pairwise(record.phases)]
    evaluations = [record.untrained, *record.evaluations]
    found += [
        Span("evaluation", one.ended_ns - one.duration_ns, one.ended_ns)
        for one in evaluations
        if one is not None and one.ended_ns is not None
    ]
    breaks = [one.begin_ns for one in found if one.name == "evaluation"]
    return tuple(sorted([*found, *_of_steps(steps, breaks)], key=lambda one: one.begin_ns))


def _of_steps(steps: Steps, breaks: Sequence[int]) -> list[Span]:
    """Segments of one kind behind one another, unless something else came in between."""
    found: list[Span] = []
    for number, kind in enumerate(steps.kinds):
        own = np.flatnonzero(steps.segment == number)
        if not len(own):
            continue
        name = _WORDS.get(kind, kind)
        begin = int(steps.end_ns[own[0]] - steps.duration_ns[own[0]])
        end = int(steps.end_ns[own[-1]])
        last = found[-1] if found else None
        if last and last.name == name and not any(last.end_ns <= at <= begin for at in breaks):
            found[-1] = Span(name, last.begin_ns, end)
        else:
            found.append(Span(name, begin, end))
    return found


@dataclass(frozen=True)
class Band:
    """Over launches, at common times: the least, the median and the most."""

    low: Floats
    middle: Floats
    high: Floats


@dataclass(frozen=True)
class Aligned:
    """Launches of a case on one clock: each stretched so that its phases end when they typically end."""

    seconds: Floats
    anchors: dict[str, float]  # seconds
    bands: dict[str, Band]  # by name of a curve
    launches: int


def aligned(launches: Sequence[Curves], names: Sequence[str], points: int = 400) -> Aligned:
    """Of these curves."""
    common = [name for name in (*ANCHORS, "end") if all(name in one.anchors for one in launches)]
    typical = {name: float(np.median([one.anchors[name] for one in launches])) for name in common}
    typical = dict(zip(common, np.maximum.accumulate(list(typical.values())).tolist(), strict=True))
    seconds = np.linspace(0.0, typical["end"], points)
    bands = {}
    for name in names:
        drawn = []
        for one in launches:
            own = np.interp(seconds, [0.0, *typical.values()], [0.0, *(one.anchors[key] for key in common)])
            drawn.append(np.interp(own, one.seconds, getattr(one, name)))
        table = np.array(drawn)
        bands[name] = Band(table.min(axis=0), np.median(table, axis=0), table.max(axis=0))
    return Aligned(seconds, typical, bands, len(launches))
