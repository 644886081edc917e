"""Control groups of our own: where one may be made, what is written into it, what it counted.

Groups belong to whoever manages them: systemd, a container's runtime, a scheduler. So one is made only below
a folder that TIMETRIAL_CGROUP names, or, for users other than root, below one that the kernel's permissions
give them: that is how it is delegated (Documentation/admin-guide/cgroup-v2.rst, "Delegation"). Root may write
everywhere, which says nothing of what it was given.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from timetrial.errors import InputError

VARIABLE = "TIMETRIAL_CGROUP"
PERIOD_US = 100_000  # of a CPU quota: the kernel's own choice
_PREFIX = "timetrial"
_V2 = "cgroup.controllers"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Group:
    """One that is not there before make(). `controllers`: what it shall cap, each with the value."""

    folder: Path
    controllers: Mapping[str, float]  # memory: bytes; cpu: processors; pids: processes and threads

    def make(self) -> None:
        """OSError: it cannot be made, or what it shall cap cannot be written."""
        _sweep(self.folder.parent)
        self.folder.mkdir()
        try:
            for name, value in self.controllers.items():
                for file, text in _files(self.folder, name, value):
                    (self.folder / file).write_text(text)
        except OSError:
            self.remove()
            raise

    def read_back(self, name: str) -> float | None:
        """What is in force for a controller; None: nothing is."""
        if name == "cpu":
            words = _text(self.folder / "cpu.max").split()
            words = words or [_text(self.folder / f"cpu.cfs_{one}_us") for one in ("quota", "period")]
            numbers = [float(word) for word in words if re.fullmatch(r"\d+", word)]
            return numbers[0] / numbers[1] if len(numbers) == 2 and numbers[1] else None
        for file in {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max",)}[name]:
            if (word := _text(self.folder / file)).isdecimal():
                return float(word)
        return None

    def has(self, pid: int, root: Path = Path("/")) -> bool | None:
        """Whether a process is in it; None: it is gone."""
        text = _text(root / f"proc/{pid}/cgroup")
        if not text:
            return None
        return any(line.endswith(f"/{self.folder.name}") for line in text.splitlines())

    @property
    def kills(self) -> int:
        """Processes that the kernel ended because the group had all the memory that it may have."""
        events = _text(self.folder / "memory.events") or _text(self.folder / "memory.oom_control")
        return next((int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill ")), 0)

    @property
    def peak_bytes(self) -> int | None:
        """The most that was charged to it; None: nobody counted."""
        for file in ("memory.peak", "memory.max_usage_in_bytes"):
            if (word := _text(self.folder / file)).isdecimal():
                return int(word)
        return None

    def remove(self, patience_s: float = 1.0) -> None:
        """Its processes have ended; the kernel may need a moment to see it."""
        deadline = time.monotonic() + patience_s
        while self.folder.exists():
            try:
                self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    return  # the next one below this folder sweeps it up
                time.sleep(0.01)


def plan_groups(values: Mapping[str, float], places: Mapping[str, Path]) -> tuple[Group, ...]:
    """For controllers with the folders to make a group in; one group where several have the same."""
    name = f"{_PREFIX}-{os.getpid()}-{next(_numbers)}"
    folders = dict.fromkeys(places[controller] for controller in values)
    return tuple(
        Group(folder / name, {one: value for one, value in values.items() if places[one] == folder})
        for folder in folders
    )


def places(root: Path = Path("/"), *, user: int | None = None, named: str | None = None) -> dict[str, Path]:
    """Controller -> the folder in which a group may be made. InputError: TIMETRIAL_CGROUP names another."""
    named = os.environ.get(VARIABLE, "") if named is None else named
    found: dict[str, Path] = {}
    for word in filter(None, named.split(os.pathsep)):
        folder = Path(word)
        controllers = _controllers(folder, root) if folder.is_dir() else []
        if not controllers:
            raise InputError(
                f"{VARIABLE} names '{word}', below which no control group with a controller for memory, cpu "
                "or pids can be made. Name folders of cgroup file systems that you may write, with "
                f"{os.pathsep!r} between them"
            )
        found |= {name: folder for name in controllers if _works(folder, name)}
    if named or (os.getuid() if user is None else user) == 0:
        return found
    for folder in _own(root):
        for name in _controllers(folder, root):
            if name not in found and _works(folder, name):
                found[name] = folder
    return found


def _files(folder: Path, name: str, value: float) -> Iterator[tuple[str, str]]:
    """What is written for a controller, in this order."""
    whole = str(int(value))
    is_v2 = (folder.parent / _V2).exists()
    if name == "pids":
        yield "pids.max", whole
    elif name == "cpu":
        quota = str(int(value * PERIOD_US))
        if is_v2:
            yield "cpu.max", f"{quota} {PERIOD_US}"
        else:
            yield "cpu.cfs_period_us", str(PERIOD_US)
            yield "cpu.cfs_quota_us", quota
    elif is_v2:
        yield "memory.max", whole
        yield from ((file, text) for file, text in _NO_SWAP_V2 if (folder / file).exists())
    else:
        yield "memory.limit_in_bytes", whole
        if (folder / "memory.memsw.limit_in_bytes").exists():  # memory and swap together
            yield "memory.memsw.limit_in_bytes", whole


_NO_SWAP_V2 = (("memory.swap.max", "0"), ("memory.oom.group", "1"))


def _works(folder: Path, name: str) -> bool:
    """Whether a group with this cap can be made there: tried."""
    (group,) = plan_groups({name: _TRIED[name]}, {name: folder})
    try:
        group.make()
    except OSError:
        return False
    tried = group.read_back(name) is not None
    group.remove(patience_s=0.0)
    return tried


_TRIED: dict[str, float] = {"memory": 2**40, "cpu": 1.0, "pids": 10_000}
CONTROLLERS = tuple(_TRIED)


def _controllers(folder: Path, root: Path) -> list[str]:
    """Of groups that would be made below the folder."""
    if (folder / _V2).exists():
        return [name for name in CONTROLLERS if name in _text(folder / "cgroup.subtree_control").split()]
    for mount, names in _mounts(root).items():
        if names and folder.is_relative_to(mount):
            return [name for name in CONTROLLERS if name in names]
    return []


def _mounts(root: Path) -> dict[Path, list[str]]:
    """Where the hierarchies are, and the controllers of each of version 1; version 2 has [] here."""
    found = {}
    for line in _text(root / "proc/self/mounts").splitlines():
        words = line.split()
        if len(words) > 3 and words[2] in ("cgroup", "cgroup2"):
            folder = root / words[1].lstrip("/")
            found[folder] = words[3].split(",") if words[2] == "cgroup" else []
    return found


def _own(root: Path) -> Iterator[Path]:
    """This process's groups; of version 2 the one above too, where its own keeps nothing from it: a group
    with processes may have no others below it."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for mount, names in _mounts(root).items():
            own = mount / path.strip("/")
            is_it = set(controllers.split(",")) <= set(names) if controllers else not names
            if not own.is_dir() or not is_it:
                continue
            yield own
            if not controllers and not names and own != mount and _is_free(own):
                yield own.parent


def _is_free(group: Path) -> bool:
    return all(
        _text(group / f"{name}.max").split()[:1] in ([], ["max"]) for name in ("memory", "cpu", "pids")
    )


def _sweep(folder: Path) -> None:
    """Takes away groups of runs that are gone."""
    for one in folder.glob(f"{_PREFIX}-*-*"):
        pid = one.name.split("-")[1]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):
                one.rmdir()


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
