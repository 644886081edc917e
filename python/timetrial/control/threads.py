"""Whether a contender worked with as many threads as were asked: the library's getter beside the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from timetrial.control.cpus import format_cpus, parse_cpus
from timetrial.control.habits import Habits
from timetrial.records.model import Setting, SettingStatus, Thread

# From which libraries read a number of threads as they are loaded.
VARIABLES = tuple(f"{one}_NUM_THREADS" for one in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA"))
CPU_OVER_WALL_SLACK = 0.1
# A thread that used less than this share of what the busiest used did not take part in the work; threads
# that add less than this share of a processor each do not work at the same time.
WORKING_SHARE = 0.1
# Of the wall time: a thread that wanted to work for less, such as one that waits for files, is none too many.
LEAST_WORK = 0.05
# Of what threads wanted and did not get: waking up takes a moment, too.
WANTED_SLACK = 0.5


@dataclass(frozen=True)
class ThreadEvidence:
    """What the kernel saw of the threads. Empty where the launch did not get so far."""

    steady: tuple[Thread, ...] = ()  # those alive at the end of the steady part, declared helpers left out
    steady_wall_ns: int = 0
    steady_cpu_ns: int | None = None  # of the whole tree: threads and processes that have ended, too
    quota_cpus: float | None = None  # that the control groups allow
    habits: Habits = field(default_factory=Habits)
    tasks: int | None = None  # threads that exist, declared helpers left out
    main: int | None = None  # the thread that hands the work to a pool and waits, where the contender has one
    bound: frozenset[int] | None = None  # the processors that `threads` was translated to

    @property
    def share(self) -> float | None:
        """Processor time over wall time while steady; None if nobody looked."""
        if self.steady_wall_ns <= 0 or not self.steady:
            return None
        return (self._live_ns if self.steady_cpu_ns is None else self.steady_cpu_ns) / self.steady_wall_ns

    @property
    def wanted(self) -> float:
        """The share that it would have had if it had never waited for a processor; what has ended is taken to
        have waited as much for its time as what is still there."""
        used_ns, waited_ns = self._used_and_waited_ns
        return (self.share or 0.0) * (1 + waited_ns / used_ns if used_ns > 0 else 1.0)

    @property
    def starved(self) -> bool:
        """Whether the threads that work waited for a processor for longer than they had one."""
        used_ns, waited_ns = self._used_and_waited_ns
        return waited_ns > used_ns

    @property
    def _used_and_waited_ns(self) -> tuple[int, int]:
        workers = self.workers
        return sum(thread.cpu_ns for thread in workers), sum(thread.wait_ns for thread in workers)

    @property
    def vanished(self) -> float:
        """Of the processor time, the part that no thread used that is still there, from 0 to 1."""
        if not self.steady or not self.steady_cpu_ns:
            return 0.0
        return max(0.0, 1 - self._live_ns / self.steady_cpu_ns)

    @property
    def workers(self) -> list[Thread]:
        """Those that took part in the work; without the one that hands it out, if there are others."""
        enough_ns = WORKING_SHARE * max((thread.cpu_ns for thread in self.steady), default=0)
        working = [thread for thread in self.steady if thread.cpu_ns >= max(enough_ns, 1)]
        return [thread for thread in working if thread.tid != self.main] or working

    @property
    def _live_ns(self) -> int:
        return sum(thread.cpu_ns for thread in self.steady)


def working_threads(evidence: ThreadEvidence) -> int | None:
    """How many threads took part in the work while steady; None if nobody looked. One that only hands the
    work to others and waits for them is none of them. Of threads that come and go, as many as there must
    have been at a time."""
    if evidence.share is None:
        return None
    live = len(evidence.workers)
    if evidence.vanished <= WORKING_SHARE:
        return live
    return max(live, _at_a_time(evidence.share), math.ceil(evidence.wanted - WANTED_SLACK))


def _at_a_time(share: float) -> int:
    """Threads that must have worked at the same time for this share of processors."""
    return max(1, math.ceil(share - CPU_OVER_WALL_SLACK))


def _too_many(asked: int, evidence: ThreadEvidence) -> bool:
    """Whether more than asked did work that is worth the name, or nobody can tell whose it was."""
    least_ns = LEAST_WORK * evidence.steady_wall_ns
    busy = [one for one in evidence.workers if one.cpu_ns + one.wait_ns >= least_ns]
    return len(busy) > asked or evidence.vanished > WORKING_SHARE


def _in_turns(asked: int, evidence: ThreadEvidence) -> bool:
    """No more threads than asked work at a time: a framework whose forward and backward passes have a pool
    each. Only for one whose getter gives the size that was asked; otherwise the threads are all there is."""
    return evidence.vanished <= WORKING_SHARE and evidence.wanted <= asked + CPU_OVER_WALL_SLACK


def judge_threads(asked: int, getter: str | None, source: str, evidence: ThreadEvidence) -> Setting:
    """By design section 6: a pool of another size, a serial library or too much processor time is
    `ignored`; a pool of the right size that works less, or that may use less, is `adjusted`."""
    sources = [source] if source else []
    share, working = evidence.share, working_threads(evidence)
    pool = int(getter) if getter is not None and getter.isdecimal() else None
    if share is not None:
        sources.append(f"CPU time over wall time {share:.2f}, working threads {working}")
    if evidence.vanished > WORKING_SHARE:
        sources.append(f"{100 * evidence.vanished:.0f} % of it by threads or processes that have ended")
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
        status, effective = "ignored", max(working or 0, _at_a_time(share))
    elif (
        working is not None
        and working > asked
        and _too_many(asked, evidence)
        and not is_bound
        and not (pool == asked and _in_turns(asked, evidence))
    ):
        status, effective = "ignored", working
    elif evidence.tasks is not None and evidence.tasks < asked and evidence.vanished <= WORKING_SHARE:
        # The getter may repeat what it was told: there are not even that many threads.
        status, effective = "ignored", evidence.tasks
    elif working is None and pool is None:
        status = "unverifiable"
    else:
        fewer, why = _fewer(asked, working, evidence)
        status, effective = ("adjusted", fewer) if fewer < asked else ("applied", asked)
        sources += [why] if why else []
    return Setting(
        name="threads",
        asked=str(asked),
        effective=None if effective is None else str(effective),
        how_read="; ".join(sources) or "nothing reports it",
        status=status,
    )


def _fewer(asked: int, working: int | None, evidence: ThreadEvidence) -> tuple[int, str]:
    """With how many threads a pool of the size asked has worked, and why with fewer, in words."""
    if asked == 1:
        return 1, ""
    reach = frozenset[int]().union(*(parse_cpus(thread.allowed_cpus) for thread in evidence.workers))
    if 0 < len(reach) < asked:
        return len(reach), f"those that work may use {format_cpus(reach)} only (Cpus_allowed_list)"
    quota = evidence.quota_cpus
    if quota is not None and quota < asked - CPU_OVER_WALL_SLACK:
        return max(1, int(quota)), f"a quota allows {quota:g} CPUs (control group)"
    if working is None:
        return asked, ""
    if working < asked:
        return max(1, working), ""
    # Threads that meet at a barrier wait in turns where others have the processors: that says nothing.
    if not evidence.starved and evidence.wanted < 1 + WORKING_SHARE * (asked - 1):
        return _at_a_time(evidence.wanted), "they take turns instead of working at the same time"
    return asked, ""


def _is_bound(asked: int, evidence: ThreadEvidence) -> bool:
    """Whether the kernel lets the contender use no more than `asked` processors, whatever its pool is."""
    if evidence.bound is None or len(evidence.bound) > asked or not evidence.steady:
        return False
    now = {parse_cpus(thread.allowed_cpus) for thread in evidence.steady}
    return all(mask <= evidence.bound for mask in now | evidence.habits.masks)
