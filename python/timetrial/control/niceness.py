"""The setting `nice`: how gladly a contender lets others go first, from -20 (never) to 19 (always).

The supervisor sets it before the contender starts, and every thread inherits it; the kernel is asked at every
look while steady what each thread has. Less than this process's own needs a permission (RLIMIT_NICE or
CAP_SYS_NICE, getrlimit(2) and capabilities(7)), which is asked for before anything starts.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping
from pathlib import Path

from timetrial.control.habits import Habits
from timetrial.errors import InputError, Unavailable
from timetrial.records.model import Setting, SettingStatus

NAME = "nice"
LEAST, MOST = -20, 19
_CAP_SYS_NICE = 23  # a bit of CapEff
_SOURCE = "nice value of every thread, at every look"


def check(settings: Mapping[str, str]) -> None:
    """InputError: no such value. Unavailable: this process may not set it."""
    word = settings.get(NAME)
    if word is None:
        return
    if not re.fullmatch(r"-?\d{1,3}", word) or not LEAST <= int(word) <= MOST:
        raise InputError(f"{NAME}={word!r}: expected a whole number from {LEAST} to {MOST}")
    lowest = _lowest_allowed()
    if int(word) < lowest:
        raise Unavailable(
            f"{NAME}={word}: this process may set {lowest} at the lowest; less needs CAP_SYS_NICE, or a "
            "limit that allows it (`nice` in /etc/security/limits.conf)"
        )


def nice_of(settings: Mapping[str, str]) -> int | None:
    """What the supervisor shall set."""
    return int(settings[NAME]) if NAME in settings else None


def judge(asked: str, habits: Habits) -> Setting:
    """By all threads, whenever they were looked at: one that had another value, or another policy than ours,
    was not held to it."""
    status: SettingStatus
    if not habits.urgencies:
        effective, status = None, "unverifiable"
    else:
        policies = {policy for policy, _ in habits.given}
        others = {urgency for urgency in habits.urgencies if urgency[0] not in policies}
        found = sorted({nice for _, nice in habits.urgencies})
        effective = ", ".join(map(str, found)) + (", under another policy" if others else "")
        status = "applied" if found == [int(asked)] and not others else "ignored"
    return Setting(name=NAME, asked=asked, effective=effective, how_read=_SOURCE, status=status)


def _lowest_allowed() -> int:
    if _capabilities() >> _CAP_SYS_NICE & 1:
        return LEAST
    soft, _ = resource.getrlimit(resource.RLIMIT_NICE)
    by_limit = LEAST if soft == resource.RLIM_INFINITY else 20 - soft
    return min(os.getpriority(os.PRIO_PROCESS, 0), max(LEAST, by_limit))


def _capabilities() -> int:
    words = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", words, re.MULTILINE)
    return int(found[1], 16) if found else 0
