"""Where and how urgently the threads of a contender were allowed to run, over several looks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from timetrial.control.cpus import parse_cpus
from timetrial.core.observer import Thread

_NAME_BYTES = 15  # of a thread, all that the kernel keeps
SCHED_DEADLINE = 6  # which Python does not name
_URGENT = (os.SCHED_FIFO, os.SCHED_RR, SCHED_DEADLINE)

Urgency = tuple[int, int]  # scheduling policy, nice value


def rank(urgency: Urgency) -> tuple[bool, bool, int]:
    """The smaller, the sooner it runs."""
    policy, nice = urgency
    return policy not in _URGENT, policy == os.SCHED_IDLE, nice


def own_urgency() -> Urgency:
    """Of this process, which every contender inherits."""
    return os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)


@dataclass
class Habits:
    """What was seen of all threads but the declared helpers, and of ourselves at the same moments: whoever
    changes the priority of a session from outside changes ours as well."""

    cpus: frozenset[int] = frozenset()  # all of them together
    masks: set[frozenset[int]] = field(default_factory=set)
    rebound: bool = False  # a thread had other processors at a later look
    urgencies: set[Urgency] = field(default_factory=set)
    given: set[Urgency] = field(default_factory=lambda: {own_urgency()})
    _by_thread: dict[int, str] = field(default_factory=dict)

    def add(self, threads: Iterable[Thread], helpers: Sequence[str]) -> None:
        """One look."""
        self.given.add(own_urgency())
        for thread in threads:
            if is_helper(thread.name, helpers) or not thread.allowed_cpus:
                continue
            self.urgencies.add((thread.policy, thread.nice))
            if self._by_thread.setdefault(thread.tid, thread.allowed_cpus) != thread.allowed_cpus:
                self.rebound = True
            mask = parse_cpus(thread.allowed_cpus)
            self.masks.add(mask)
            self.cpus |= mask


def is_helper(name: str, patterns: Sequence[str]) -> bool:
    """Whether a thread of this name is declared to compute nothing; a * ends a prefix."""
    for pattern in patterns:
        wanted = pattern.removesuffix("*")
        is_prefix = pattern.endswith("*") or len(wanted) > _NAME_BYTES
        if name == wanted or (is_prefix and name.startswith(wanted[:_NAME_BYTES])):
            return True
    return False
