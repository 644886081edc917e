"""What comes before the steady steps: import, build, first step, warm-up; cold in the proof, warm in what is
timed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from statistics import median

import numpy as np
import numpy.typing as npt

from timetrial.analysis.steps import Steps
from timetrial.records.model import LaunchRecord

# Borders in LaunchRecord.phases: each phase ends at the border of its name.
_BEFORE = {"import": "start", "build": "import"}


@dataclass(frozen=True)
class Phases:
    """Seconds. None: the launch did not get so far, or has no such phase."""

    import_s: float | None = None  # importing the framework [s]
    build_s: float | None = None  # building the network [s]
    first_step_s: float | None = None  # of a proof: its first command that computes
    # From the beginning of the first step to that of the first steady one, without waiting for others.
    to_steady_s: float | None = None
    resets_s: float | None = None  # all resets together, between the passes of steps that are timed
    before_steady_s: float | None = None  # from the start of the process to the first steady step


def phases_of(record: LaunchRecord, steps: Steps, counting: npt.NDArray[np.bool_] | None = None) -> Phases:
    """Of one launch. `counting`: which of its steps are steady; None: it has no steady state."""
    ends = {phase.name: phase.ns for phase in record.phases}

    def seconds(name: str) -> float | None:
        before = _BEFORE[name]
        return (ends[name] - ends[before]) / 1e9 if name in ends and before in ends else None

    to_steady_s = before_steady_s = None
    if counting is not None and counting.any():
        first = int(np.argmax(counting))
        begin_ns = int(steps.end_ns[first] - steps.duration_ns[first])
        begin_ns -= record.waited_ns
        to_steady_s = (begin_ns - int(steps.end_ns[0] - steps.duration_ns[0])) / 1e9
        before_steady_s = (begin_ns - record.phases[0].ns) / 1e9 if record.phases else None
    return Phases(
        seconds("import"),
        seconds("build"),
        _first_step_s(record, steps),
        to_steady_s,
        record.passes.reset_ns / 1e9 if record.passes and record.passes.resets else None,
        before_steady_s,
    )


def _first_step_s(record: LaunchRecord, steps: Steps) -> float | None:
    if record.purpose == "proof":
        return None if record.first_call_ns is None else record.first_call_ns / 1e9
    first = np.flatnonzero(steps.are("first"))
    return float(steps.duration_ns[first[0]]) / 1e9 if len(first) else None


def typical(launches: Iterable[Phases]) -> Phases:
    """The median over launches, phase by phase."""
    known = list(launches)

    def middle(name: str) -> float | None:
        values = [value for one in known if (value := getattr(one, name)) is not None]
        return median(values) if values else None

    return Phases(**{field.name: middle(field.name) for field in fields(Phases)})


def typical_start(launches: Iterable[tuple[int, Phases]]) -> Phases:
    """The same of launches beside which nobody started; of all, where there are no others. `launches`: how
    many could start side by side, this one among them, and its phases."""
    known = list(launches)
    alone = [phases for at_once, phases in known if at_once == 1]
    return typical(alone or [phases for _, phases in known])
