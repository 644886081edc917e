"""What a case really used while steady, beyond its step time: processors, threads, faults, switches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from timetrial.cautions import Caution

if TYPE_CHECKING:
    from timetrial.analysis.summary import Launch
    from timetrial.records.model import Counter, LaunchRecord, Purpose

SHARED_SHARE, SHARED_BYTES = 0.1, 16 << 20  # of private memory; and in all: less is not worth a word
_MB = 1 << 20
Reading = Callable[["LaunchRecord"], float | None]


def over_launches(launches: Sequence[Launch], reading: Reading) -> float | None:
    """The median over the speed launches that are ok; None: no record tells."""
    seen = [
        value
        for one in launches
        if one.record.purpose == "speed" and one.record.outcome == "ok"
        if (value := reading(one.record)) is not None
    ]
    return median(seen) if seen else None


def witness(name: str) -> Reading:
    """One of those in SCHEMA.md."""
    return lambda record: record.witnesses.get(name)


def waiting_threads(record: LaunchRecord) -> float | None:
    """How many threads, on average, were ready and had no processor."""
    ready, used = record.witnesses.get("runnable_cpus"), record.witnesses.get("cpus_used")
    return None if ready is None or used is None else max(0.0, ready - used)


def busiest_share(record: LaunchRecord) -> float | None:
    """The share that its busiest thread had of the CPU time of all: 1 of one thread, a quarter of four that
    share the work."""
    spent = [one.cpu_ns for one in record.threads]
    return max(spent) / sum(spent) if sum(spent) else None


def working_threads(record: LaunchRecord) -> float | None:
    """As many threads of equal work as would be as uneven as its own: (sum of CPU time)² over the sum of
    squares, which is n where n threads share the work and 1 where one does all of it."""
    spent = [one.cpu_ns for one in record.threads]
    squares = sum(value**2 for value in spent)
    return sum(spent) ** 2 / squares if squares else None


def throttled_share(record: LaunchRecord) -> float | None:
    """Of the steady part, that a quota of its control group stopped it."""
    stopped_s, wall_s = record.witnesses.get("throttled_s"), record.witnesses.get("wall_s")
    return None if stopped_s is None or not wall_s else stopped_s / wall_s


def shared_bytes(record: LaunchRecord) -> float | None:
    """Shared memory at the end of the steady part."""
    return next((one.shared_bytes for one in record.memory.phases if one.phase == "steady"), None)


def lean_by_sharing(launches: Sequence[Launch]) -> list[str]:
    """A warning where much is held that the column `memory` leaves out: tensors in shared memory."""
    found = [
        (int(shared), held)
        for one in launches
        if (shared := shared_bytes(one.record)) is not None and (held := one.record.memory.held) is not None
    ]
    if not found:
        return []
    shared, held = max(found)
    if shared < max(SHARED_BYTES, SHARED_SHARE * held):
        return []
    return [Caution.SHARED_MEMORY.words(shared=round(shared / _MB), held=round(held / _MB))]


# Whose counters count: those of the launches that are timed, where they were asked for; else of others.
_COUNTED: tuple[Purpose, ...] = ("speed", "resources", "learning")


def counters_of(launches: Sequence[Launch], name: str) -> list[Counter]:
    """What launches of one purpose that are ok say of a counter."""
    for purpose in _COUNTED:
        records = [one.record for one in launches if one.record.purpose == purpose]
        found = [
            counter
            for record in records
            if record.outcome == "ok"
            for counter in record.counters
            if counter.name == name
        ]
        if found:
            return found
    return []


def counted(launches: Sequence[Launch], name: str) -> float | None:
    """Of a step: the median over those launches; None: nobody counted, or it could not be counted."""
    seen = [one.per_step for one in counters_of(launches, name) if one.per_step is not None]
    return median(seen) if seen else None


def instructions_per_cycle(launches: Sequence[Launch]) -> float | None:
    """Both of the same launches."""
    instructions, cycles = counted(launches, "instructions"), counted(launches, "cycles")
    return None if instructions is None or not cycles else instructions / cycles
