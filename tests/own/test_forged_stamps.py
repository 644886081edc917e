"""A step that writes other stamps than the clock's, and one that sleeps: what the parent can show."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable

import numpy as np
import pytest
from launching import MS, SHORT

from timetrial.core.observer import Observation, Thread
from timetrial.observing.accounts import Accounts, check_order
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import LaunchRecord

# What a module of the user's can do: it shares its process with the runtime. After a segment, and before the
# answer to it, `rewrite` makes other times (ns) of those in the window.
FORGER = """
import gc, mmap, struct, time

def rewrite(times):
    {rewrite}

def forge(window):
    header, capacity = 4096, 65536
    with mmap.mmap(5, 0) as file:
        start = header + window * 16 * capacity
        words = []
        while word := struct.unpack_from("<Q", file, start + 8 * len(words))[0]:
            words.append(word)
        for i, t in enumerate(rewrite([word >> 8 for word in words])):
            struct.pack_into("<Q", file, start + 8 * i, t << 8 | (words[i] & 0xff))

def make():
    patched = []
    def step():
        if not patched:
            runtime = next(one for one in gc.get_objects() if type(one).__name__ == "StepContender")
            run = runtime.run
            def forged(steps, max_ns, window, in_parts=False):
                done = run(steps, max_ns, window, in_parts)
                forge(int(window))
                return done
            runtime.run = forged
            patched.append(runtime)
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass
    return step
"""
HONEST = "return times"
FASTER = "return [times[0] + (t - times[0]) // 50 for t in times]"  # seen through any load
AHEAD = "return [t - 10**9 for t in times]"
BEHIND = "return [t + 10**9 for t in times]"
BACKWARD = "return [times[0] + 10**6 * (i % 2) for i in range(len(times))]"

SLEEPER = """
import time

def make():
    return lambda: time.sleep({seconds})
"""

LONG = dataclasses.replace(SHORT, min_ns=60_000 * MS, budget_ns=60_000 * MS, max_steps=300)


@pytest.fixture
def launch(launch: Callable[..., LaunchRecord]) -> Callable[[str], LaunchRecord]:
    """As everywhere here, but for longer."""
    return functools.partial(launch, measured=LONG, max_steps=LONG.max_steps)


def test_who_forges_nothing_passes(launch: Callable[[str], LaunchRecord]) -> None:
    record = launch(FORGER.format(rewrite=HONEST))
    assert record.outcome == "ok", record.reason
    assert not any("asleep" in one for one in record.warnings)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("rewrite", "says"),
    [
        (FASTER, r"used \d+ ms of CPU time, and its stamps account for \d+ ms: it works outside the clock"),
        (AHEAD, "ms before it could, by its stamps"),
        (BEHIND, "ms after its answer, by its stamps"),
        (BACKWARD, "its stamps go backward"),
    ],
)  # fmt: skip
def test_forged_stamps_are_wrong(launch: Callable[[str], LaunchRecord], rewrite: str, says: str) -> None:
    record = launch(FORGER.format(rewrite=rewrite))
    assert record.outcome == "wrong"
    assert record.reason is not None
    assert re.search(says, record.reason), record.reason


@pytest.mark.attempt
def test_a_step_that_sleeps_is_named(launch: Callable[[str], LaunchRecord]) -> None:
    record = launch(SLEEPER.format(seconds=0.002))
    assert record.outcome == "ok", record.reason
    assert any(one.startswith("asleep for a fifth of its step time or more") for one in record.warnings)


def look(time_ns: int, cpu_ns: dict[int, int], wait_ns: int = 0) -> Observation:
    threads = tuple(Thread(1, tid, "", cpu, wait_ns, "0", 0, 0, 0, 0) for tid, cpu in cpu_ns.items())
    return Observation(time_ns, sum(cpu_ns.values()), 0, 0, 0, 0, 0, 0, 0, 1, False, threads)


SECOND = 1_000_000_000


def test_a_pool_that_spins_between_segments_is_no_forger() -> None:
    accounts = Accounts.between(
        1, look(0, {1: 0, 2: 0}), look(SECOND, {1: SECOND // 2, 2: SECOND}), [(0, SECOND // 2)]
    )
    assert accounts.stamped_ns == SECOND // 2
    accounts.check()
    assert accounts.warning is None


def test_time_before_the_look_is_not_counted() -> None:
    spans = [(0, SECOND), (SECOND, 2 * SECOND), (2 * SECOND, 3 * SECOND)]
    seen = look(SECOND + 1, {1: 5 * SECOND}), look(2 * SECOND, {1: 7 * SECOND})
    accounts = Accounts.between(1, *seen, spans)
    assert (accounts.stamped_ns, accounts.segments, accounts.main_cpu_ns) == (SECOND - 1, 1, 2 * SECOND)
    with pytest.raises(LaunchError, match="2000 ms of CPU time, and its stamps account for 1000 ms"):
        accounts.check()


def test_who_waits_for_a_processor_is_not_asleep() -> None:
    busy = look(0, {1: 0}), look(SECOND, {1: SECOND // 4}, wait_ns=3 * SECOND // 4)
    assert Accounts.between(1, *busy, [(0, SECOND)]).warning is None
    asleep = look(0, {1: 0}), look(SECOND, {1: SECOND // 4})
    assert Accounts.between(1, *asleep, [(0, SECOND)]).warning is not None


@pytest.mark.attempt
def test_a_segment_lies_between_its_order_and_its_answer() -> None:
    times = np.array([1_000_000, 2_000_000, 3_000_000])
    check_order(times, 900_000, 500_000, 3_000_100)
    for ordered, before, answered in (
        (1_100_000, 0, 4_000_000),
        (0, 1_100_000, 4_000_000),
        (0, 0, 2_900_000),
    ):
        with pytest.raises(LaunchError, match="by its stamps"):
            check_order(times, ordered, before, answered)
