"""What happened around a launch: witnesses of a disturbed measurement, from the kernel."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def out_of_memory_kills() -> int:
    """Out-of-memory kills counted so far in our control group and on the machine; 0 if nobody counts."""
    count = 0
    group = _control_group()
    for path in (group / "memory.events" if group else None, Path("/proc/vmstat")):
        if path is None:
            continue
        try:
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    count += int(value)
        except (OSError, ValueError):
            continue
    return count


def _control_group() -> Path | None:
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return Path("/sys/fs/cgroup") / line[3:].strip().lstrip("/")
    except OSError:
        pass
    return None


@dataclass(frozen=True)
class MachineTimes:
    """Seconds of all processors since boot, from /proc/stat."""

    busy_s: float
    stolen_s: float
    total_s: float

    @classmethod
    def read(cls) -> MachineTimes:
        """Now."""
        words = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        user, nice, system, idle, waiting, hard, soft, stolen = (int(word) * _TICK_S for word in words)
        busy = user + nice + system + hard + soft
        return cls(busy, stolen, busy + stolen + idle + waiting)


def witnesses(before: MachineTimes, after: MachineTimes, contender_cpu_s: float) -> dict[str, float | None]:
    """`steal_ratio`: processor time that the hypervisor gave to others, of all. `other_cpu_ratio`: that of
    processes other than the contender, of all. None where the time between is too short to tell."""
    total = after.total_s - before.total_s
    if total <= 2 * _TICK_S:
        return {"steal_ratio": None, "other_cpu_ratio": None}
    others = max(0.0, after.busy_s - before.busy_s - contender_cpu_s)
    return {"steal_ratio": (after.stolen_s - before.stolen_s) / total, "other_cpu_ratio": others / total}
