"""Which processors share a core or a package, which are alike, and what the words for `affinity` mean here.

The kernel says it in /sys/devices/system/cpu/cpuN (Documentation/admin-guide/cputopology.rst).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from timetrial.control.cpus import parse_cpus
from timetrial.errors import InputError

COMPACT, SPREAD, EACH = "compact", "spread", "each"
WORDS = {
    COMPACT: "as few cores as possible, both threads of each",
    SPREAD: "as many packages and cores as possible",
    EACH: "as spread, and every thread that works on one of them alone",
}
_FOLDER = Path("/sys/devices/system/cpu")
Place = tuple[int, int]  # package, core in it


def places_of(cpus: Iterable[int]) -> dict[int, Place]:
    """Where each processor lies. One of which the kernel says nothing is a core of its own."""
    return {
        cpu: (_number(cpu, "topology/physical_package_id", 0), _number(cpu, "topology/core_id", cpu))
        for cpu in cpus
    }


def chosen_by(word: str, count: int, places: Mapping[int, Place]) -> frozenset[int]:
    """So many processors of these."""
    if word == COMPACT:
        order = sorted(places, key=lambda cpu: (places[cpu], cpu))
    else:
        before: Counter[tuple[str, object]] = Counter()
        ranks = {}
        for cpu in sorted(places, key=lambda cpu: (places[cpu], cpu)):
            package, _ = core = places[cpu]
            if not before["core", core]:
                before["cores", package] += 1
            # First every package has one core with one thread at work, then every core, then their others.
            ranks[cpu] = (before["core", core], before["cores", package], package)
            before["core", core] += 1
        order = sorted(places, key=lambda cpu: ranks[cpu])
    return frozenset(order[:count])


def resolve(affinity: str, threads: str | None, allowed: frozenset[int]) -> frozenset[int]:
    """The processors that a value of `affinity` names. InputError: none are named."""
    if affinity not in WORDS:
        try:
            return parse_cpus(affinity)
        except InputError as error:
            raise InputError(f"{error}, or {', '.join(WORDS)}") from None
    if threads is None:
        raise InputError(
            f"affinity={affinity}: threads says how many processors that is, and is not set: threads=2"
        )
    return chosen_by(affinity, int(threads), places_of(allowed))


def kind_of(cpu: int) -> tuple[object, ...]:
    """Two processors of one kind have the same memory near them and compute alike: package, node of memory,
    sizes of caches (cores of two types differ in them), and the capacity where the kernel tells it. One of
    which it tells no caches is of a kind of its own."""
    own = _FOLDER / f"cpu{cpu}"
    try:
        sizes = own.glob("cache/index*/size")
        caches = sorted((one.parent.name, one.read_text(encoding="utf-8")) for one in sizes)
        nodes = sorted(one.name for one in own.glob("node[0-9]*"))
    except OSError:
        caches, nodes = [], []
    if not caches:
        return ("unknown", cpu)
    package, capacity = _number(cpu, "topology/physical_package_id", 0), _number(cpu, "cpu_capacity", 0)
    return package, *nodes, *caches, capacity


def _number(cpu: int, name: str, otherwise: int) -> int:
    try:
        return int((_FOLDER / f"cpu{cpu}" / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise
