"""Which other programs used the CPUs between two looks, by name. What a container hides has none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_MOST_NAMED = 3
# Fields of /proc/PID/stat by their place behind the name (man 5 proc).
_PARENT, _USER, _SYSTEM, _START, _PROCESSOR = 1, 11, 12, 19, 36


@dataclass(frozen=True)
class Program:
    """A process at one look. Threads that have ended count, children do not."""

    name: str
    parent: int
    cpu_s: float
    processor: int  # on which its first thread ran last


Programs = Mapping[tuple[int, int], Program]  # by process number and start: numbers are used again


def read_programs(root: Path = Path("/")) -> Programs:
    """Every process that can be seen. About 20 us each: nothing for the middle of a measurement."""
    found: dict[tuple[int, int], Program] = {}
    for folder in (root / "proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            text = (folder / "stat").read_text(errors="replace")
        except OSError:  # ended meanwhile
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        words = rest.split()
        if len(words) <= _PROCESSOR:
            continue
        found[int(folder.name), int(words[_START])] = Program(
            name=name,
            parent=int(words[_PARENT]),
            cpu_s=(int(words[_USER]) + int(words[_SYSTEM])) * _TICK_S,
            processor=int(words[_PROCESSOR]),
        )
    return found


def busiest(
    before: Programs, after: Programs, ours: int, cpus: Collection[int] | None = None
) -> dict[str, float]:
    """CPU seconds of the programs that used most, without the process `ours` and all below it; with `cpus`
    only those that were seen on one of them."""
    family = _family(after, ours)
    used: Counter[str] = Counter()
    for key, program in after.items():
        earlier = before.get(key)
        places = {program.processor} | ({earlier.processor} if earlier else set())
        if key[0] in family or (cpus is not None and not places & set(cpus)):
            continue
        used[program.name] += program.cpu_s - (earlier.cpu_s if earlier else 0.0)  # type: ignore[assignment]
    return {name: seconds for name, seconds in used.most_common(_MOST_NAMED) if seconds > _TICK_S}


def _family(programs: Programs, ancestor: int) -> set[int]:
    """A process and all below it."""
    parents = {pid: program.parent for (pid, _), program in programs.items()}
    family = {ancestor}
    for pid in parents:
        line = [pid]
        while line[-1] in parents and line[-1] not in family and len(line) <= len(parents):
            line.append(parents[line[-1]])
        if line[-1] in family:
            family.update(line)
    return family
