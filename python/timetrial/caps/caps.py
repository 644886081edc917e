"""Caps as settings: `memory.cap`, `cpu.cap`, `processes.cap`, `open_files.cap`, and who keeps each."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from timetrial.caps.groups import VARIABLE, Group, places, plan_groups
from timetrial.cases.sizes import bytes_of
from timetrial.errors import InputError, Unavailable

MEMORY, BY, CPU = "memory.cap", "memory.cap_by", "cpu.cap"
PROCESSES, OPEN_FILES = "processes.cap", "open_files.cap"
NAMES = (MEMORY, CPU, PROCESSES, OPEN_FILES)
NONE = "none"

Way = Literal["cgroup", "data", "watchdog", "address_space"]
LEAST_BYTES = 1 << 20
LEAST_FILES = 16  # its pipes, and the file of a library while it is loaded
LEAST_CPUS = 0.01  # a thousandth of a second in each period of the kernel's
WATCH_HZ, BESIDE_HZ = 100, 10  # looks a second: of the watchdog, and beside limits that hold for one process


@dataclass(frozen=True)
class Caps:
    """At most. None: as much as there is."""

    memory_bytes: int | None = None
    memory_by: Way | None = None
    cpus: float | None = None
    processes: int | None = None
    open_files: int | None = None
    groups: tuple[Group, ...] = ()

    @property
    def watch_hz(self) -> int | None:
        """Looks of the supervisor at what is held; None: the kernel does it for all processes."""
        return {"watchdog": WATCH_HZ, "data": BESIDE_HZ}.get(self.memory_by or "")

    def options(self) -> list[str]:
        """Of the supervisor."""
        words = [word for group in self.groups for word in ("--group", str(group.folder))]
        limit = {"data": "--memory", "address_space": "--address-space"}.get(self.memory_by or "")
        if limit:
            words += [limit, str(self.memory_bytes)]
        if self.watch_hz:
            words += ["--watch-memory", str(self.memory_bytes), "--watch-hz", str(self.watch_hz)]
        if self.processes is not None and self._in_group("pids") is None:
            words += ["--processes", str(self.processes)]
        if self.open_files is not None:
            words += ["--open-files", str(self.open_files)]
        return words

    def _in_group(self, controller: str) -> Group | None:
        return next((one for one in self.groups if controller in one.controllers), None)

    @property
    def memory_group(self) -> Group | None:
        """That keeps the cap on memory, where one does."""
        return self._in_group("memory")

    @property
    def words(self) -> str:
        """'memory.cap=536870912 (RLIMIT_DATA)', for whoever ran into one; '': there is none."""
        by = {"cgroup": "control group", "data": "RLIMIT_DATA", "address_space": "RLIMIT_AS"}
        found = []
        if self.memory_bytes is not None:
            way = by.get(self.memory_by or "", self.memory_by or "")
            found.append(f"{MEMORY}={self.memory_bytes} ({way})")
        for name, value in ((CPU, self.cpus), (PROCESSES, self.processes), (OPEN_FILES, self.open_files)):
            found += [f"{name}={value:g}"] if value is not None else []
        return ", ".join(found)


@cache
def _places() -> dict[str, Path]:
    return places()


def check(settings: Mapping[str, str]) -> None:
    """InputError: no such value. Unavailable: nobody here can keep such a cap."""
    caps_of(settings)


def caps_of(settings: Mapping[str, str], found: Mapping[str, Path] | None = None) -> Caps:
    """Those that a case asks for, each with whoever keeps it: a control group where one may be made,
    otherwise limits of each process. `found`: where control groups may be made; None: looked for."""
    words = {name: settings[name] for name in NAMES if settings.get(name, NONE) != NONE}
    if BY in settings and MEMORY not in words:
        if MEMORY in settings:
            return caps_of({name: word for name, word in settings.items() if name != BY}, found)
        raise InputError(f"{BY}={settings[BY]!r} says who keeps a cap on memory, and there is no {MEMORY}")
    if not words:
        return Caps()
    memory = _memory(words.get(MEMORY))
    cpus = _cpus(words.get(CPU))
    processes = _whole(PROCESSES, words.get(PROCESSES), 1)
    files = _whole(OPEN_FILES, words.get(OPEN_FILES), LEAST_FILES)
    found = _places() if found is None else found
    way = _way(settings.get(BY), found) if memory is not None else None
    grouped: dict[str, float] = {}
    if memory is not None and way == "cgroup":
        grouped["memory"] = memory
    if cpus is not None:
        if "cpu" not in found:
            raise Unavailable(f"{CPU}={words[CPU]} needs a control group for cpu. {_CURE}")
        grouped["cpu"] = cpus
    if processes is not None:
        if "pids" in found:
            grouped["pids"] = processes
        elif os.getuid() == 0:
            raise Unavailable(
                f"{PROCESSES}={processes}: the kernel applies a limit of processes to users other than root "
                f"alone, and to root a control group for pids. {_CURE}"
            )
    return Caps(memory, way, cpus, processes, files, plan_groups(grouped, found) if grouped else ())


_CURE = (
    f"Name a folder in which timetrial may make control groups: {VARIABLE}=FOLDER (several with ':' between "
    "them), or be another user than root in a group that is delegated to that user"
)


def _way(asked: str | None, found: Mapping[str, Path]) -> Way:
    if asked == "cgroup" and "memory" not in found:
        raise Unavailable(f"{BY}=cgroup needs a control group for memory. {_CURE}")
    if asked is not None:
        return cast("Way", asked)
    return "cgroup" if "memory" in found else "data"


def _memory(word: str | None) -> int | None:
    if word is None:
        return None
    size = bytes_of(word, MEMORY)
    if size < LEAST_BYTES:
        raise InputError(
            f"{MEMORY}={word!r}: no program starts in {size} bytes; expected 1MiB at least, or {NONE}"
        )
    return size


def _cpus(word: str | None) -> float | None:
    if word is None:
        return None
    value = float(word) if re.fullmatch(r"\d{1,5}(\.\d{1,6})?", word, re.ASCII) else 0.0
    if value < LEAST_CPUS:
        raise InputError(
            f"{CPU}={word!r}: expected processors, a number from {LEAST_CPUS} on such as 0.5 or 2, or {NONE}"
        )
    return value


def _whole(name: str, word: str | None, least: int) -> int | None:
    if word is None:
        return None
    if not re.fullmatch(r"\d{1,9}", word, re.ASCII) or int(word) < least:
        raise InputError(f"{name}={word!r}: expected a whole number from {least} on, or {NONE}")
    return int(word)
