"""Whether a contender kept to the processors and the priority that it was given, at every look while steady.

What a contender reads back when it is ready may change afterwards; the kernel is asked again.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from timetrial.control import niceness
from timetrial.control.cpus import format_cpus, parse_cpus
from timetrial.control.habits import SCHED_DEADLINE, Habits, rank
from timetrial.control.threads import ThreadEvidence
from timetrial.records.model import Setting, SettingStatus

_POLICIES = {
    os.SCHED_OTHER: "other",
    os.SCHED_FIFO: "fifo",
    os.SCHED_RR: "rr",
    os.SCHED_BATCH: "batch",
    os.SCHED_IDLE: "idle",
    SCHED_DEADLINE: "deadline",
}


def judge_affinity(wanted: frozenset[int], evidence: ThreadEvidence) -> Setting:
    """Of an affinity that was asked: `ignored` if a thread had a processor outside it at any look,
    `adjusted` if the library bound its threads more narrowly, within what was asked."""
    source, asked = "Cpus_allowed_list of every thread", format_cpus(wanted)
    if not evidence.steady:
        return Setting(name="affinity", asked=asked, effective=None, how_read=source, status="unverifiable")
    masks = {parse_cpus(thread.allowed_cpus) for thread in evidence.steady} | evidence.habits.masks
    together = frozenset[int]().union(*masks)
    status: SettingStatus = "applied"
    if together - wanted:
        status = "ignored"
    elif any(mask != wanted for mask in masks):
        status = "adjusted"
    return Setting(
        name="affinity", asked=asked, effective=format_cpus(together), how_read=source, status=status
    )


def judge_manners(
    evidence: ThreadEvidence, given: frozenset[int] | None, asked: Collection[str] = ()
) -> list[Setting]:
    """What nobody asked for and the contender did nevertheless; empty for almost all. `given`: the processors
    that it was started on; `asked`: settings that somebody asked for, which are judged already."""
    judged = []
    masks = evidence.habits.masks
    if given is not None and masks and "affinity" not in asked:
        together = frozenset[int]().union(*masks)
        if together - given or evidence.habits.rebound:
            judged.append(
                Setting(
                    name="affinity",
                    asked=format_cpus(given),
                    effective=format_cpus(together),
                    how_read="Cpus_allowed_list of every thread, which changed while steady"
                    if evidence.habits.rebound
                    else "Cpus_allowed_list of every thread",
                    status="ignored" if together - given else "adjusted",
                )
            )
    return judged if niceness.NAME in asked else judged + _judge_priority(evidence.habits)


def _judge_priority(habits: Habits) -> list[Setting]:
    """Ours is what every contender gets. One that takes a higher one has an advantage: `ignored`."""
    given = min(habits.given, key=rank)
    others = habits.urgencies - habits.given
    if not others:
        return []
    highest = min(others, key=rank)
    return [
        Setting(
            name="priority",
            asked=_in_words(*given),
            effective=_in_words(*highest),
            how_read="scheduling policy and nice value of every thread",
            status="ignored" if rank(highest) < rank(given) else "adjusted",
        )
    ]


def _in_words(policy: int, nice: int) -> str:
    return f"nice {nice}" if policy == os.SCHED_OTHER else f"{_POLICIES.get(policy, policy)}, nice {nice}"
