"""Whether a contender worked with as many threads as were asked: the library's getter beside the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from timetrial.launch.cpus import format_cpus, parse_cpus
from timetrial.records.model import Setting, SettingStatus, Thread

CPU_OVER_WALL_SLACK = 0.1
# A thread that used less than this share of one processor did not take part in the work.
WORKING_SHARE = 0.01
_NAME_BYTES = 15  # of a thread, all that the kernel keeps


@dataclass(frozen=True)
class ThreadEvidence:
    """What the kernel saw of the threads. Empty where the launch did not get so far."""

    steady: tuple[Thread, ...] = ()  # processor time while steady, declared helpers left out
    steady_wall_ns: int = 0
    tasks: int | None = None  # threads that exist, declared helpers left out
    main: int | None = None  # the thread that hands the work to a pool and waits, where the contender has one
    bound: frozenset[int] | None = None  # the processors that `threads` was translated to


def is_helper(name: str, patterns: Sequence[str]) -> bool:
    """Whether a thread of this name is declared to compute nothing; a * ends a prefix."""
    for pattern in patterns:
        wanted = pattern.removesuffix("*")
        is_prefix = pattern.endswith("*") or len(wanted) > _NAME_BYTES
        if name == wanted or (is_prefix and name.startswith(wanted[:_NAME_BYTES])):
            return True
    return False


def working_threads(evidence: ThreadEvidence) -> int | None:
    """How many threads took part in the work while steady; None if nobody looked. One that only hands the
    work to others and waits for them is none of them."""
    if evidence.steady_wall_ns <= 0 or not evidence.steady:
        return None
    enough_ns = WORKING_SHARE * evidence.steady_wall_ns
    working = [thread.tid for thread in evidence.steady if thread.cpu_ns >= enough_ns]
    others = [tid for tid in working if tid != evidence.main]
    return len(others) or len(working)


def judge_threads(asked: int, getter: str | None, source: str, evidence: ThreadEvidence) -> Setting:
    """By design section 6: a pool of another size, a serial library or too much processor time is
    `ignored`; a pool of the right size of which fewer threads worked is `adjusted`."""
    sources = [source] if source else []
    working = working_threads(evidence)
    pool = int(getter) if getter is not None and getter.isdecimal() else None
    share = None
    if working is not None:
        share = sum(thread.cpu_ns for thread in evidence.steady) / evidence.steady_wall_ns
        sources.append(f"CPU time over wall time {share:.2f}, working threads {working}")
    if evidence.tasks is not None:
        sources.append(f"tasks {evidence.tasks}")
    is_bound = _is_bound(asked, evidence)
    if is_bound:
        cores = format_cpus(evidence.bound or frozenset())
        sources.append(f"every thread bound to {cores} (Cpus_allowed_list)")
    status: SettingStatus
    effective = pool
    if pool is not None and pool != asked:
        status = "ignored"
    elif share is not None and share > asked + CPU_OVER_WALL_SLACK:
        status, effective = "ignored", max(working or 0, math.ceil(share - CPU_OVER_WALL_SLACK))
    elif working is not None and working > asked and not is_bound:
        status, effective = "ignored", working
    elif evidence.tasks is not None and evidence.tasks < asked:
        # The getter may repeat what it was told: there are not even that many threads.
        status, effective = "ignored", evidence.tasks
    elif working is None and pool is None:
        status = "unverifiable"
    elif working is not None and working < asked:
        status, effective = "adjusted", max(1, working)
    else:
        status, effective = "applied", asked
    return Setting(
        name="threads",
        asked=str(asked),
        effective=None if effective is None else str(effective),
        how_read="; ".join(sources) or "nothing reports it",
        status=status,
    )


def _is_bound(asked: int, evidence: ThreadEvidence) -> bool:
    """Whether the kernel lets the contender use no more than `asked` processors, whatever its pool is."""
    if evidence.bound is None or len(evidence.bound) > asked or not evidence.steady:
        return False
    return all(parse_cpus(thread.allowed_cpus) <= evidence.bound for thread in evidence.steady)
