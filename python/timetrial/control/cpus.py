"""Sets of processors in words: '0-1', '0+2'. A comma would separate two values on the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from timetrial.errors import InputError


def parse_cpus(text: str) -> frozenset[int]:
    """'0-1' -> {0, 1}; '0+2' -> {0, 2}. Also the kernel's own form, '0,2'."""
    cpus: set[int] = set()
    for piece in re.split(r"[+,]", text.strip()):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", piece)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InputError(f"affinity={text!r}: expected cores as in '0', '0-1' or '0+2'")
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(cpus)


def format_cpus(cpus: Iterable[int]) -> str:
    """{0, 1, 3} -> '0-1+3'."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return "+".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def allowed_cpus() -> frozenset[int]:
    """The processors that this process may use."""
    return frozenset(os.sched_getaffinity(0))
