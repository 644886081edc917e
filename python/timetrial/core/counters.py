"""What processors and the kernel count of threads (perf events), and the energy that the machine has used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial.core import _core


@dataclass(frozen=True)
class CounterSum:
    """Since the counters were opened, of the counted threads and all that they have started."""

    name: str
    is_hardware: bool
    error: int  # errno of who refused it; 0: it is counted
    count: int  # of `running_ns` of the time that the threads were on processors
    enabled_ns: int  # all of that time
    running_ns: int


@dataclass(frozen=True)
class EnergyZone:
    """A part of the machine, used by whoever runs on it."""

    zone: str  # "intel-rapl:0"
    name: str  # "package-0", "dram"
    error: int  # errno of who refused it; 0: it can be read
    energy_uj: int
    range_uj: int  # behind which it begins anew


class Counters:
    """Of threads that are there, and all that these start from now on; none of them may start others while
    they are opened. Never raises for what the kernel refuses: each counter says it."""

    def __init__(self, tids: Sequence[int]):
        self._native = _core.Counters(list(tids))

    def read(self) -> tuple[CounterSum, ...]:
        """Now; about 1 us for each counter and thread."""
        return tuple(
            CounterSum(one.name, one.is_hardware, one.error, one.count, one.enabled_ns, one.running_ns)
            for one in self._native.read()
        )

    def close(self) -> None:
        """Counts no more."""
        self._native.close()


def read_energy(root: Path = Path("/")) -> tuple[EnergyZone, ...]:
    """Every zone of RAPL, now. `root`: where /sys lies. OSError: this machine has none."""
    return tuple(
        EnergyZone(one.zone, one.name, one.error, one.energy_uj, one.range_uj)
        for one in _core.read_energy(str(root))
    )
