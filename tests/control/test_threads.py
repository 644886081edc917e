"""Threads by CPU time of the whole tree: what counts as asked, as less, as more."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from timetrial.control.habits import Habits
from timetrial.control.manners import judge_affinity, judge_manners
from timetrial.control.threads import ThreadEvidence, judge_threads, working_threads
from timetrial.core.observer import Thread as SeenThread
from timetrial.records.model import Thread

WALL_NS = 1_000_000_000


def evidence(
    shares: list[float], waits: list[float] | None = None, cpus: str = "0-3", **more: Any
) -> ThreadEvidence:
    """Live threads by their CPU time and their time on a run queue, over wall time."""
    waits = waits or [0.0] * len(shares)
    threads = tuple(
        Thread(tid=i, name="t", cpu_ns=int(cpu * WALL_NS), wait_ns=int(wait * WALL_NS), allowed_cpus=cpus)
        for i, (cpu, wait) in enumerate(zip(shares, waits, strict=True))
    )
    return ThreadEvidence(steady=threads, steady_wall_ns=WALL_NS, tasks=len(shares), **more)


def judge(asked: int, seen: ThreadEvidence, getter: str | None = None) -> tuple[str, str | None]:
    setting = judge_threads(asked, str(asked) if getter is None else getter, "getter()", seen)
    return setting.status, setting.effective


@pytest.mark.parametrize(
    ("asked", "shares", "waits", "status", "effective"),
    [
        (2, [1.0, 0.012], None, "adjusted", "1"),
        (2, [1.0, 0.09], None, "adjusted", "1"),
        (2, [0.9, 0.4], None, "applied", "2"),  # a serial part is legal
        (4, [0.9, 0.4, 0.4, 0.4], None, "applied", "4"),
        (4, [0.9, 0.9, 0.01, 0.01], None, "adjusted", "2"),
        (2, [0.5, 0.5], None, "adjusted", "1"),  # in turns: nobody waited for a processor
        (4, [0.3, 0.3, 0.3, 0.3], None, "adjusted", "2"),
        (2, [0.5, 0.5], [0.5, 0.5], "applied", "2"),  # at the same time, and others had the processors
        (2, [0.05, 0.05], [0.9, 0.9], "applied", "2"),
        (2, [0.02, 0.02], [0.4, 0.4], "applied", "2"),  # starved: they meet at barriers, and wait in turns
        (2, [0.5, 0.0], [0.5, 0.0], "adjusted", "1"),
        (1, [0.5, 0.5], [0.5, 0.5], "ignored", "2"),  # the same pool, and one was asked
        (1, [0.02, 0.03], None, "applied", "1"),  # one waits for files and the other for what it has read
        (1, [0.02, 0.02], [0.7, 0.7], "ignored", "2"),  # both wanted to work
        (1, [0.0, 0.0], None, "applied", "1"),  # nothing was used at all: the step sleeps
    ],
)
def test_a_pool_that_works_less(
    asked: int, shares: list[float], waits: list[float] | None, status: str, effective: str
) -> None:
    assert judge(asked, evidence(shares, waits)) == (status, effective)


@pytest.mark.parametrize(
    ("asked", "shares", "waits", "status", "effective"),
    [
        (2, [0.7, 0.6, 0.6], None, "applied", "2"),  # one pool forwards, one backwards: two at a time
        (1, [0.5, 0.5], None, "applied", "1"),
        (2, [0.9, 0.9, 0.9], None, "ignored", "3"),
        (2, [0.6, 0.6, 0.6], [0.5, 0.5, 0.5], "ignored", "3"),  # at the same time, on too few processors
        (1, [0.6, 0.6], None, "ignored", "2"),
    ],
)
def test_more_threads_than_asked_may_work_in_turns(
    asked: int, shares: list[float], waits: list[float] | None, status: str, effective: str
) -> None:
    assert judge(asked, evidence(shares, waits)) == (status, effective)


@pytest.mark.parametrize("quota", [1.0, 1.5])
def test_a_quota_below_what_was_asked(quota: float) -> None:
    setting = judge_threads(2, "2", "getter()", evidence([0.5, 0.5], [0.5, 0.5], quota_cpus=quota))
    assert (setting.status, setting.effective) == ("adjusted", "1")
    assert f"a quota allows {quota:g} CPUs" in setting.how_read


def test_a_quota_that_is_enough() -> None:
    assert judge(2, evidence([0.9, 0.9], quota_cpus=2.0)) == ("applied", "2")


def test_threads_that_share_one_processor_by_their_own_choice() -> None:
    setting = judge_threads(2, "2", "", evidence([0.5, 0.5], [0.5, 0.5], cpus="1"))
    assert (setting.status, setting.effective) == ("adjusted", "1")
    assert "those that work may use 1 only" in setting.how_read


@pytest.mark.parametrize(
    ("asked", "live", "waits", "total", "status", "effective"),
    [
        (1, [0.9], None, 1.8, "ignored", "2"),  # a fresh thread in each step, beside the one that stays
        (1, [0.05], None, 3.0, "ignored", "3"),
        (1, [0.4], None, 1.0, "applied", "1"),  # one after the other
        (1, [0.11], [0.8], 0.24, "ignored", "2"),  # the first again, where others have nine tenths
        (1, [0.1], [0.25], 0.3, "applied", "1"),  # one after the other, there
        (2, [0.2], None, 1.9, "applied", "2"),  # none of them lives to be counted: the work was there
        (2, [0.9], None, 0.9, "ignored", "1"),  # there are no two, neither before nor now
    ],
)
def test_threads_and_processes_that_have_ended(
    asked: int, live: list[float], waits: list[float] | None, total: float, status: str, effective: str
) -> None:
    seen = evidence(live, waits, steady_cpu_ns=int(total * WALL_NS))
    assert judge(asked, seen) == (status, effective)


def test_the_record_says_how_much_has_vanished() -> None:
    setting = judge_threads(1, "1", "", evidence([0.9], steady_cpu_ns=int(1.8 * WALL_NS)))
    assert "CPU time over wall time 1.80" in setting.how_read
    assert "50 % of it by threads or processes that have ended" in setting.how_read


def test_nobody_looked() -> None:
    assert working_threads(ThreadEvidence()) is None
    assert ThreadEvidence().share is None
    assert math.isclose(ThreadEvidence().wanted, 0.0)


# Where threads may run, and how urgently -------------------------------------------------------------


def looks(*masks: str, nice: int = 0, policy: int = 0, name: str = "t") -> Habits:
    """One thread, seen once for each mask."""
    habits = Habits(given={(0, 0)})
    for mask in masks:
        thread = SeenThread(
            pid=1, tid=1, name=name, cpu_ns=0, wait_ns=0, allowed_cpus=mask, nice=nice, policy=policy,
            voluntary_switches=0, involuntary_switches=0,
        )  # fmt: skip
        habits.add([thread], ["helper*"])
    habits.given = {(0, 0)}
    return habits


def with_habits(habits: Habits) -> ThreadEvidence:
    return dataclasses.replace(evidence([0.9], cpus="0-1"), habits=habits)


@pytest.mark.parametrize(
    ("masks", "status", "effective"),
    [
        (["0-1"], None, None),
        (["0"], None, None),  # a library that binds from the start: nobody asked it not to
        (["0-1", "0"], "adjusted", "0-1"),
        (["0", "0-1"], "adjusted", "0-1"),
        (["0-1", "0-2"], "ignored", "0-2"),
        (["0-3"], "ignored", "0-3"),
        (["0-1", "0-2", "0-1"], "ignored", "0-2"),  # back again before the last look
    ],
)
def test_affinity_that_nobody_asked_for(masks: list[str], status: str | None, effective: str | None) -> None:
    found = judge_manners(with_habits(looks(*masks)), frozenset({0, 1}))
    assert [(one.name, one.status, one.effective) for one in found] == (
        [("affinity", status, effective)] if status else []
    )
    assert judge_manners(with_habits(looks(*masks)), frozenset({0, 1}), ["affinity"]) == []


def test_affinity_that_was_asked_is_judged_by_every_look() -> None:
    """The last look alone would say 0-1 in both."""
    wanted = frozenset({0, 1})
    assert judge_affinity("0-1", wanted, with_habits(looks("0-1", "0-3", "0-1"))).status == "ignored"
    assert judge_affinity("0-1", wanted, with_habits(looks("0-1", "0", "0-1"))).status == "adjusted"
    assert judge_affinity("0-1", wanted, with_habits(looks("0-1"))).status == "applied"


@pytest.mark.parametrize(
    ("policy", "nice", "status", "words"),
    [
        (0, 0, None, ""),
        (0, -5, "ignored", "nice -5"),
        (0, 5, "adjusted", "nice 5"),
        (1, 0, "ignored", "fifo, nice 0"),
        (5, 0, "adjusted", "idle, nice 0"),
        (3, -1, "ignored", "batch, nice -1"),
    ],
)
def test_priority_is_ours(policy: int, nice: int, status: str | None, words: str) -> None:
    found = judge_manners(with_habits(looks("0-1", nice=nice, policy=policy)), frozenset({0, 1}))
    assert [(one.name, one.asked, one.effective, one.status) for one in found] == (
        [("priority", "nice 0", words, status)] if status else []
    )


def test_declared_helpers_may_run_where_they_like() -> None:
    habits = looks("0-3", nice=-5, name="helper_thread")
    assert judge_manners(with_habits(habits), frozenset({0, 1})) == []


def test_a_session_whose_priority_changes_from_outside_accuses_nobody() -> None:
    """We were at nice 0 and are at nice 8; the contender is the same, or follows a moment later."""
    for nice in (0, 8):
        habits = looks("0-1", nice=nice)
        habits.given = {(0, 0), (0, 8)}
        assert judge_manners(with_habits(habits), frozenset({0, 1})) == []
