"""What the control groups of a process say: its CPU quota, how long that stopped it, kills for memory.

Version 2 (cpu.max, cpu.stat) and version 1 (cpu.cfs_quota_us, cpu.stat) alike. A quota holds for a group and
for all below it, so a process is asked about its own group and every one above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Throttled:
    """Since the group was made: periods in which its quota ran out, and how long it stood still."""

    periods: int
    ns: int


def cpu_groups(pid: int | str = "self", root: Path = Path("/")) -> list[Path]:
    """Folders of the control groups that share out CPU time to a process, its own first; those that its
    namespace cannot see are left out."""
    mount, path = _cpu_mount(pid, root)
    if mount is None:
        return []
    own = mount / path.strip("/")
    return [group for group in (own, *own.parents) if group.is_relative_to(mount) and group.is_dir()]


def _cpu_mount(pid: int | str, root: Path) -> tuple[Path | None, str]:
    """Where the hierarchy with the CPU controller is mounted, and the path of the process in it."""
    mounts: dict[str, Path] = {}
    for line in _text(root / "proc/self/mounts").splitlines():
        words = line.split()
        if len(words) > 3 and words[2] == "cgroup2":
            mounts.setdefault("", root / words[1].lstrip("/"))
        elif len(words) > 3 and words[2] == "cgroup" and "cpu" in words[3].split(","):
            mounts.setdefault("cpu", root / words[1].lstrip("/"))
    paths: dict[str, str] = {}
    for line in _text(root / f"proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        paths["cpu" if "cpu" in names else controllers] = path
    for name in ("cpu", ""):  # version 1 has the controller wherever both are mounted
        if name in mounts and name in paths:
            return mounts[name], paths[name]
    return None, ""


def throttled(groups: Sequence[Path]) -> Throttled | None:
    """Of the group that was stopped longest; None where no group counts."""
    found = []
    for group in groups:
        facts = _numbers(_text(group / "cpu.stat"))
        if "nr_throttled" in facts:
            ns = facts.get("throttled_time", 1000 * facts.get("throttled_usec", 0))
            found.append(Throttled(facts["nr_throttled"], ns))
    return max(found, key=lambda one: one.ns, default=None)


def quota_cpus(groups: Sequence[Path]) -> float | None:
    """CPU time per time that the tightest of the quotas allows, in CPUs; None: no quota."""
    found = []
    for group in groups:
        words = _text(group / "cpu.max").split()
        words = words or [_text(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]) > 0:
            found.append(int(words[0]) / int(words[1]))
    return min(found, default=None)


@dataclass(frozen=True)
class Kills:
    """Out-of-memory kills: in our own control group, and on the machine, whose count has all of them."""

    machine: int = 0
    group: int = 0

    def since(self, earlier: Kills) -> Kills:
        """Those that were counted meanwhile."""
        return Kills(self.machine - earlier.machine, self.group - earlier.group)


def out_of_memory_kills(root: Path = Path("/")) -> Kills:
    """Counted so far; 0 if nobody counts."""
    group = 0
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        place = {"": "memory.events", "memory": "memory/memory.oom_control"}.get(controllers)
        if place is not None:
            folder, _, file = f"sys/fs/cgroup/{place}".rpartition("/")
            group += _numbers(_text(root / folder / path.strip().lstrip("/") / file)).get("oom_kill", 0)
    return Kills(_numbers(_text(root / "proc/vmstat")).get("oom_kill", 0), group)


def _numbers(text: str) -> dict[str, int]:
    """Of lines 'name number'."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
