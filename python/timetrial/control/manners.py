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
from timetrial.control.topology import EACH, WORDS
from timetrial.records.model import Setting, SettingStatus

_POLICIES = {
    os.SCHED_OTHER: "other",
    os.SCHED_FIFO: "fifo",
    os.SCHED_RR: "rr",
    os.SCHED_BATCH: "batch",
    os.SCHED_IDLE: "idle",
    SCHED_DEADLINE: "deadline",
}


def judge_affinity(asked: str, wanted: frozenset[int], evidence: ThreadEvidence) -> Setting:
    """Of an affinity that was asked, which means the processors `wanted`: `ignored` if a thread had another
    one at any look, `adjusted` if the library bound its threads more narrowly, within what was asked."""
    source = "Cpus_allowed_list of every thread"
    word = asked if asked in WORDS else format_cpus(parse_cpus(asked))
    if not evidence.steady:
        return Setting(name="affinity", asked=word, effective=None, how_read=source, status="unverifiable")
    masks = {parse_cpus(thread.allowed_cpus) for thread in evidence.steady} | evidence.habits.masks
    together = frozenset[int]().union(*masks)
    effective, status = format_cpus(together), _affinity_status(masks, together, wanted)
    if asked == EACH and status != "ignored":
        effective, status = _one_each(evidence)
    return Setting(name="affinity", asked=word, effective=effective, how_read=source, status=status)


def _affinity_status(
    masks: set[frozenset[int]], together: frozenset[int], wanted: frozenset[int]
) -> SettingStatus:
    if together - wanted:
        return "ignored"
    return "adjusted" if any(mask != wanted for mask in masks) else "applied"


def _one_each(evidence: ThreadEvidence) -> tuple[str, SettingStatus]:
    """Whether each thread that works has a processor that is no other's."""
    masks = [format_cpus(parse_cpus(thread.allowed_cpus)) for thread in evidence.workers]
    alone = all(mask.isdecimal() for mask in masks) and len(set(masks)) == len(masks)
    return ", ".join(sorted(masks)), "applied" if alone else "ignored"


def judge_manners(
    evidence: ThreadEvidence, given: frozenset[int] | None, asked: Collection[str] = ()
) -> list[Setting]:
    """What nobody asked for and the contender did nevertheless; empty for almost all. `given`: the processors
    on which it was to compute; `asked`: settings that somebody asked for, which are judged already."""
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
