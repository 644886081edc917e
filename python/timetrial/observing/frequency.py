"""Clock frequencies and heat, where the kernel tells of them. A frequency is a hint: it is one moment's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from timetrial.control.cpus import parse_cpus

_FOLDER = "sys/devices/system/cpu"
_MOST_CPUS = 8  # some drivers wake a CPU to ask it


def highest_frequency_hz(cpus: Iterable[int], root: Path = Path("/")) -> float | None:
    """Of the first few of these CPUs: one that works runs faster than those that idle. None: unreadable."""
    paths = [root / f"{_FOLDER}/cpu{cpu}/cpufreq/scaling_cur_freq" for cpu in sorted(cpus)[:_MOST_CPUS]]
    return max((1000.0 * number for path in paths if (number := _number(path))), default=None)


def heat_throttles(cpus: Iterable[int], root: Path = Path("/")) -> int | None:
    """How often these CPUs have slowed themselves down because of heat; None where nobody counts."""
    counts = [_number(root / f"{_FOLDER}/cpu{cpu}/thermal_throttle/core_throttle_count") for cpu in cpus]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def with_siblings(cpus: Iterable[int], root: Path = Path("/")) -> frozenset[int]:
    """These CPUs and those that share a core with one of them."""
    together = frozenset(cpus)
    for cpu in together:
        path = root / f"{_FOLDER}/cpu{cpu}/topology/thread_siblings_list"
        try:
            together |= parse_cpus(path.read_text().strip())
        except OSError:
            continue
    return together


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
