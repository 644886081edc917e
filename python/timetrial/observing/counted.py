"""Counters and energy of the steady part, by a ladder: events of the processor in user mode; where these are
refused, those of the kernel, which nearly every machine has; energy where the machine offers it. What there
is not has its errno and what would change it: it is never 0, and never a guess.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial.core.counters import Counters, CounterSum, EnergyZone, read_energy
from timetrial.records.model import Counter

PARANOID = "proc/sys/kernel/perf_event_paranoid"
ENOUGH_FOR_USER_MODE, ENOUGH_FOR_KERNEL = 2, 1  # values of kernel.perf_event_paranoid
# What is added up over the packages of a machine: name of a counter, how its zones' names begin.
ENERGY: Mapping[str, str] = {"package_energy_j": "package", "memory_energy_j": "dram"}
MOST_WATTS = 1_000.0  # of a package: a counter that could have begun anew twice since the last look is no use
TOGETHER = (
    "others ran at the same time, and energy is the whole machine's: isolated=true, or resource_launches=1"
)
_KERNEL = ("context_switches", "migrations")  # need more rights than others: they happen in the kernel


@dataclass(frozen=True)
class Tally:
    """All counters at one border."""

    time_ns: int
    sums: tuple[CounterSum, ...]
    zones: tuple[EnergyZone, ...]


class Counting:
    """From when it is made, of these threads and all that they start. `is_alone`: no other contender runs
    meanwhile. `root`: where /proc and /sys lie."""

    def __init__(
        self,
        tids: Sequence[int],
        *,
        is_alone: bool,
        root: Path = Path("/"),
        count: Callable[[Sequence[int]], Counters] = Counters,
    ):
        self._root = root
        self._counters = count(tids)
        self._no_energy = None if is_alone else TOGETHER

    def tally(self) -> Tally:
        """Now."""
        zones: tuple[EnergyZone, ...] = ()
        if self._no_energy is None:
            try:
                zones = read_energy(self._root)
            except OSError as error:
                self._no_energy = why_no_energy(error.errno or 0)
        return Tally(time.monotonic_ns(), self._counters.read(), zones)

    def end(self, stretches: Sequence[tuple[Tally, Tally]], steps: int) -> list[Counter]:
        """Of a step, over stretches of time in which so many were taken. Nothing is counted any more."""
        self._counters.close()
        if not stretches or steps < 1:
            return []
        return [
            *(self._of_events(place, stretches, steps) for place in range(len(stretches[0][0].sums))),
            *(self._of_energy(name, stretches, steps) for name in ENERGY),
        ]

    def _of_events(self, place: int, stretches: Sequence[tuple[Tally, Tally]], steps: int) -> Counter:
        first = stretches[0][0].sums[place]
        if first.error:
            why = why_not_counted(first, paranoid_in(self._root))
            return Counter(name=first.name, reason=why)
        pairs = [(before.sums[place], after.sums[place]) for before, after in stretches]
        enabled = sum(after.enabled_ns - before.enabled_ns for before, after in pairs)
        running = sum(after.running_ns - before.running_ns for before, after in pairs)
        if running <= 0:
            words = "never ran: others had the counter, or all of its threads slept"
            return Counter(name=first.name, reason=words)
        count = sum(after.count - before.count for before, after in pairs)
        return Counter(
            name=first.name, per_step=count * enabled / running / steps, running_share=running / enabled
        )

    def _of_energy(self, name: str, stretches: Sequence[tuple[Tally, Tally]], steps: int) -> Counter:
        if self._no_energy is not None:
            return Counter(name=name, reason=self._no_energy)
        joules, found = 0.0, 0
        for before, after in stretches:
            old = {zone.zone: zone for zone in before.zones}
            for zone in after.zones:
                if not zone.name.startswith(ENERGY[name]) or zone.zone not in old:
                    continue
                if zone.error or old[zone.zone].error:
                    return Counter(name=name, reason=why_no_energy(zone.error or old[zone.zone].error))
                seconds = (after.time_ns - before.time_ns) / 1e9
                if seconds * MOST_WATTS * 1e6 > zone.range_uj:
                    words = f"its counter may have begun anew more than once in {seconds:.0f} s"
                    return Counter(name=name, reason=words)
                joules += used_uj(old[zone.zone], zone) / 1e6
                found += 1
        if not found:
            return Counter(name=name, reason=f"no zone of RAPL is called {ENERGY[name]}")
        return Counter(name=name, per_step=joules / steps, running_share=1.0)


def used_uj(before: EnergyZone, after: EnergyZone) -> int:
    """Microjoules between two readings of a zone, of which the counter began anew once at most."""
    grown = after.energy_uj - before.energy_uj
    return grown if grown >= 0 else grown + after.range_uj


def paranoid_in(root: Path = Path("/")) -> int | None:
    """kernel.perf_event_paranoid; None: the kernel has no perf events, or does not say."""
    try:
        return int((root / PARANOID).read_text())
    except (OSError, ValueError):
        return None


def why_not_counted(refused: CounterSum, paranoid: int | None) -> str:
    """The errno of who refused it, and what would change it."""
    number = refused.error
    if number == errno.ESRCH:
        words = "all its threads had ended"
    elif number in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.ENXIO):
        words = (
            "this machine shows no counter for it, as most virtual machines: a host that passes its "
            "performance counters on (a virtual PMU), or a machine without a hypervisor, has them"
        )
    elif number == errno.ENOSYS:
        words = "this kernel has no perf events: one built with CONFIG_PERF_EVENTS has them"
    elif number in (errno.EMFILE, errno.ENFILE):
        words = "too many open files, one for each counter and thread: raise the limit (ulimit -n)"
    elif number in (errno.EACCES, errno.EPERM):
        words = _permission(ENOUGH_FOR_KERNEL if refused.name in _KERNEL else ENOUGH_FOR_USER_MODE, paranoid)
    else:
        words = os.strerror(number)
    return f"{errno.errorcode.get(number, number)}: {words}"


def _permission(enough: int, paranoid: int | None) -> str:
    if paranoid is not None and paranoid > enough:
        return (
            f"kernel.perf_event_paranoid is {paranoid}: sudo sysctl kernel.perf_event_paranoid={enough}, or "
            "the capability CAP_PERFMON"
        )
    return (
        "not the kernel's setting but a filter refuses it, as in containers: docker run --cap-add=PERFMON, "
        "with a seccomp profile that allows perf_event_open"
    )


def why_no_energy(number: int) -> str:
    """The same for energy."""
    if number in (errno.EACCES, errno.EPERM):
        words = (
            "only root may read it (since CVE-2020-8694): sudo chmod a+r "
            "/sys/class/powercap/intel-rapl:*/energy_uj; containers hide it from root too"
        )
    elif number == errno.ENOENT:
        words = (
            "this machine shows no energy counters (/sys/class/powercap): sudo modprobe intel_rapl_msr "
            "where the processor has RAPL; virtual machines have none"
        )
    else:
        words = f"{os.strerror(number)}, from /sys/class/powercap"
    return f"{errno.errorcode.get(number, number)}: {words}"


def counted_here(root: Path = Path("/")) -> list[Counter]:
    """What could be counted of this process, over a piece of work without end or meaning: for `doctor`."""
    counting = Counting([os.getpid()], is_alone=True, root=root)
    before = counting.tally()
    sum(range(20_000))
    return counting.end([(before, counting.tally())], 1)
