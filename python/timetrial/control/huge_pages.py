"""The setting `memory.huge_pages`: whether a contender's memory may come in pages of 2 MB instead of 4 KB.

Fewer, larger pages spare faults and translations, and cost memory. How the machine gives them out is its
administrator's choice (/sys/kernel/mm/transparent_hugepage/enabled: always, madvise or never); a process can
refuse them (prctl(PR_SET_THP_DISABLE), which children inherit) or have glibc's malloc ask for them
(glibc.malloc.hugetlb=1, since glibc 2.35; "Memory Allocation Tunables" in its manual).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from timetrial.control.malloc import OTHERS
from timetrial.errors import Unavailable
from timetrial.records.model import Setting, SettingStatus

NAME = "memory.huge_pages"
NEVER, MADVISE = "never", "madvise"
_TUNABLE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
_MACHINE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_SINCE = (2, 35)


@dataclass(frozen=True)
class Seen:
    """What the kernel says of a process. `allowed` None: nobody looked, or a kernel before 5.0."""

    allowed: bool | None = None  # THP_enabled in /proc/PID/status
    wished: int = 0  # mappings that somebody has asked huge pages for (VmFlags: hg)
    huge_bytes: int = 0  # AnonHugePages


def look(pid: int) -> Seen:
    """OSError: the process is gone."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    allowed = re.search(r"^THP_enabled:\s*([01])$", status, re.MULTILINE)
    maps = Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace")
    return Seen(
        allowed=allowed[1] == "1" if allowed else None,
        wished=len(re.findall(r"^VmFlags:.* hg\b", maps, re.MULTILINE)),
        huge_bytes=1024 * sum(map(int, re.findall(r"^AnonHugePages:\s*(\d+) kB", maps, re.MULTILINE))),
    )


def check(settings: Mapping[str, str]) -> None:
    """Unavailable: this machine gives none."""
    if settings.get(NAME) != MADVISE:
        return
    try:
        chosen = _MACHINE.read_text(encoding="utf-8")
    except OSError:
        chosen = "[never]"
    if "[never]" in chosen:
        raise Unavailable(
            f"{NAME}={MADVISE}: this machine gives no huge pages to anyone ({_MACHINE} says never; its "
            "administrator can write madvise there)"
        )
    words = os.confstr("CS_GNU_LIBC_VERSION") or ""
    version = tuple(int(part) for part in re.findall(r"\d+", words)[:2])
    if version < _SINCE:
        raise Unavailable(
            f"{NAME}={MADVISE} needs glibc 2.35 or later, this machine has {words or 'another'}"
        )


def variables_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variable for what is asked."""
    return dict(_TUNABLE) if settings.get(NAME) == MADVISE else {}


def refused(settings: Mapping[str, str]) -> bool:
    """Whether the supervisor shall refuse them for the contender."""
    return settings.get(NAME) == NEVER


def judge(asked: str, seen: Seen, environment: Mapping[str, str], mapped: Collection[Path]) -> Setting:
    """By what the kernel says of the process, and what glibc was told."""
    other = next((path.name for path in mapped if path.name.startswith(OTHERS)), None)
    how = f"/proc/PID/status, smaps: {seen.wished} mappings want them, {seen.huge_bytes} bytes are there"
    status: SettingStatus
    if seen.allowed is None:
        effective, status = None, "unverifiable"
    elif not seen.allowed:
        effective, status = NEVER, "applied" if asked == NEVER else "ignored"
    elif asked == NEVER:
        effective, status = "allowed", "ignored"
    elif other is not None:
        effective, status = f"what {other} does", "ignored"
    elif _TUNABLE.items() <= environment.items() and seen.wished:
        effective, status = MADVISE, "applied"
    else:
        effective, status = "nobody has asked for any", "ignored"
    return Setting(name=NAME, asked=asked, effective=effective, how_read=how, status=status)
