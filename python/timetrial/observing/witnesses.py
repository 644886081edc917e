"""What happened around the steady part of a launch: who else had the CPUs, by the kernel's own counts.

The machine is looked at where the contender is, at borders between segments. What the contender, its rivals,
its supervisor and we used is taken off: all of that is our own process and what lies below it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from timetrial.control_groups import Throttled, cpu_groups, quota_cpus, throttled
from timetrial.core.observer import tree_cpu_ns
from timetrial.observing.frequency import heat_throttles, highest_frequency_hz, with_siblings

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_ALL = -1  # the line of /proc/stat that sums over processors


@dataclass(frozen=True)
class ProcessorTimes:
    """Seconds since boot that one processor, or all of them, stood idle, or were given to others by the
    hypervisor. All other time it was busy: idle time is exact, user and system time are sampled by ticks."""

    idle_s: float
    stolen_s: float


@dataclass(frozen=True)
class Look:
    """The machine at one border."""

    time_ns: int
    processors: Mapping[int, ProcessorTimes]  # by number, -1: all
    ours_ns: int  # CPU time of ourselves and all below us: every contender, every supervisor
    parent_ns: int  # of ourselves alone
    throttled: Throttled | None
    heat_throttles: int | None
    frequency_hz: float | None = None


@dataclass(frozen=True)
class Share:
    """What the contender had between two looks, in nanoseconds; declared helper threads wait for nobody."""

    wall_ns: int  # without the time in which it was stopped
    cpu_ns: int
    longest_wait_ns: int  # of the thread that waited longest for a processor that others had
    runnable_ns: int  # all threads: on a processor, or waiting for one


class Machine:
    """Looks at the machine for one contender. `root`: where /proc and /sys lie."""

    def __init__(self, pid: int, root: Path = Path("/")):
        self._root = root
        self._groups = cpu_groups(pid, root)
        self.quota_cpus = quota_cpus(self._groups)

    def cores(self, cpus: Collection[int]) -> frozenset[int]:
        """The processors of the cores that these belong to."""
        return with_siblings(cpus, self._root)

    def look(self, cpus: Collection[int]) -> Look:
        """Now. `cpus`: those that the contender may use."""
        return Look(
            time_ns=time.monotonic_ns(),
            processors=read_processors(self._root),
            ours_ns=tree_cpu_ns(os.getpid()),
            parent_ns=time.process_time_ns(),
            throttled=throttled(self._groups),
            heat_throttles=heat_throttles(cpus, self._root),
            frequency_hz=highest_frequency_hz(cpus, self._root),
        )

    def glance(self, ours_ns: int) -> Look:
        """Only who uses the processors, for the ends of a turn of some milliseconds. `ours_ns`: what we have
        used, and the only one below us that is not stopped."""
        return Look(
            time_ns=time.monotonic_ns(),
            processors=read_processors(self._root),
            ours_ns=ours_ns,
            parent_ns=time.process_time_ns(),
            throttled=None,
            heat_throttles=None,
        )


def read_processors(root: Path = Path("/")) -> dict[int, ProcessorTimes]:
    """/proc/stat; empty where it says nothing."""
    found = {}
    for line in (root / "proc/stat").read_text().splitlines():
        name, *words = line.split()
        if not name.startswith("cpu") or len(words) < 8:
            break  # processors come first
        # user nice system idle iowait irq softirq steal
        idle, waiting, stolen = (int(words[place]) * _TICK_S for place in (3, 4, 7))
        found[int(name[3:] or _ALL)] = ProcessorTimes(idle + waiting, stolen)
    return found


def witnesses_of(begin: Look, end: Look, share: Share, cores: Collection[int]) -> dict[str, float | None]:
    """The witnesses of one launch, by the names of SCHEMA.md. `cores`: the processors that the contender may
    use and those that share a core with them; others are no matter."""
    wall_s = (end.time_ns - begin.time_ns) / 1e9
    if wall_s <= 0 or share.wall_ns <= 0:
        return {}
    seen: dict[str, float | None] = {
        "wall_s": wall_s,
        "cpus_used": share.cpu_ns / share.wall_ns,
        "parent_cpus": (end.parent_ns - begin.parent_ns) / 1e9 / wall_s,
        "wait_ratio": share.longest_wait_ns / share.wall_ns,
        "runnable_cpus": share.runnable_ns / share.wall_ns,
    }
    known = {cpu for cpu in cores if cpu in begin.processors and cpu in end.processors}
    if known:
        every = known == end.processors.keys() - {_ALL}
        lines = [_ALL] if every and _ALL in begin.processors else sorted(known)
        idle_s = sum(end.processors[one].idle_s - begin.processors[one].idle_s for one in lines)
        stolen_s = sum(end.processors[one].stolen_s - begin.processors[one].stolen_s for one in lines)
        ours_s = (end.ours_ns - begin.ours_ns) / 1e9
        others_s = max(0.0, wall_s * len(known) - idle_s - stolen_s - ours_s)
        used = min(max(share.cpu_ns / share.wall_ns, 1.0), len(known))
        seen["cpus"] = len(known)
        seen["idle_lines"] = len(lines)
        seen["others_cpus"] = others_s / wall_s
        seen["steal_ratio"] = stolen_s / (wall_s * used)
    if begin.throttled and end.throttled:
        seen["throttled_s"] = (end.throttled.ns - begin.throttled.ns) / 1e9
        seen["throttled_periods"] = end.throttled.periods - begin.throttled.periods
    if end.frequency_hz is not None:  # the contender has just worked; at the beginning it waited
        seen["frequency_hz"] = end.frequency_hz
    if begin.heat_throttles is not None and end.heat_throttles is not None:
        seen["heat_throttles"] = end.heat_throttles - begin.heat_throttles
    return seen
