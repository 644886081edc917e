"""Work that a step leaves behind, and helpers that go on while it is stopped."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import takewhile
from types import ModuleType
from typing import Any

import pytest
from launching import MS, words
from left_running import FILL, POSTS_ONE_AHEAD, STEP

from timetrial.analysis.pairs import turns_of
from timetrial.core import stamp_times_ns
from timetrial.launch import Course, LaunchPlan, heat_launches
from timetrial.launch.turns import EMPTY_NS
from timetrial.observing import aftermath
from timetrial.records.model import LaunchRecord
from timetrial.records.store import read_stamps
from timetrial.results.results import LaunchFiles

POSTS = "pool.submit(busy)"
WAITS = "pool.submit(busy).result()"
RETURNS = "return pool.submit(busy)"
RETURNS_NESTED = "return {'loss': 1.5, 'later': [pool.submit(busy)]}"
WAITS_BY_ITSELF = "busy()"

Ride = Callable[..., tuple[LaunchRecord, list[float]]]


@pytest.fixture
def ride(plan: Callable[..., LaunchPlan]) -> Ride:
    """A launch of this code in a heat of its own: its record, and the time per step of each turn [ms]."""

    def ride(code: str, **changed: Any) -> tuple[LaunchRecord, list[float]]:
        one = plan(code, "race")
        measure = dataclasses.replace(one.measure, warmup_ns=100 * MS, **changed)
        one = dataclasses.replace(one, measure=measure)
        heat = heat_launches([one], Course([(0,)] * 3))
        [record] = heat.records()
        goes_on = heat.ridden.goes_on if heat.ridden else {}
        record.facts["goes_on"] = goes_on.get(0, "")
        if record.outcome != "ok":
            return record, []
        before = list(takewhile(lambda segment: segment.kind != "turn", record.segments))
        times = stamp_times_ns(read_stamps(one.folder))
        last = times[before[-1].first_stamp : before[-1].first_stamp + before[-1].stamps]
        record.facts["last_warmup_ns"] = str(int(last[-1] - last[0]))
        turns = turns_of(LaunchFiles(record, one.folder).steps())
        return record, [float(turn.mean()) / MS for turn in turns]

    return ride


def says_so(record: LaunchRecord) -> bool:
    return any("work goes on behind the step" in one for one in record.warnings)


@pytest.mark.parametrize("after", [RETURNS, RETURNS_NESTED, WAITS, WAITS_BY_ITSELF])
def test_what_is_waited_for_is_in_the_step(ride: Ride, after: str) -> None:
    record, turns = ride(STEP.replace("AFTER", after))
    assert record.outcome == "ok", words(record)
    assert min(turns) > 10


def test_what_is_not_waited_for_is_charged_and_named(ride: Ride) -> None:
    record, turns = ride(STEP.replace("AFTER", POSTS_ONE_AHEAD))
    assert record.outcome == "ok", words(record)
    assert says_so(record)
    assert any(one.behind_ns > MS for one in record.segments if one.kind == "turn")
    assert min(turns) > 10


def test_a_queue_without_an_end_is_no_hang(ride: Ride, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "MOST_S", 0.5)
    record, _ = ride(STEP.replace("AFTER", POSTS))
    assert record.outcome == "wrong"
    assert "return before their work is done" in str(record.reason)
    assert "progress_timeout_s" not in str(record.reason)


LOADER = """
import multiprocessing

def with_processes():
    fork = multiprocessing.get_context("fork")
    batches = fork.Queue(500)
    for _ in range(2):
        fork.Process(target=fill, args=(batches,), daemon=True).start()
    return lambda: batches.get() and time.sleep(0.002)

def with_a_thread():
    batches = queue.Queue(500)
    threading.Thread(target=fill, args=(batches,), daemon=True).start()
    return lambda: batches.get() and time.sleep(0.002)

def idle():
    threading.Thread(target=queue.Queue().get, daemon=True).start()
    return lambda: time.sleep(0.002)

def make():
    return WHICH()
"""


@pytest.mark.parametrize(
    ("which", "said"), [("with_processes", "2 processes"), ("with_a_thread", "a thread"), ("idle", "")]
)
def test_helpers_that_go_on_are_seen(ride: Ride, which: str, said: str) -> None:
    record, _ = ride(FILL + LOADER.replace("WHICH", which), rhythm_ns=200 * MS, max_steps=100_000)
    assert record.outcome == "ok", words(record)
    assert record.facts["goes_on"].startswith(said)
    assert bool(record.facts["goes_on"]) == bool(said)
    # What was put by while somebody listened is used up in front of the turns, for as long as that is given.
    # In turns on a busy machine more is put by: each is stopped before it, nobody knows for how long.
    assert said == "" or int(record.facts["last_warmup_ns"]) >= EMPTY_NS


def test_a_period_that_the_step_knows_is_taken(plan: Callable[..., LaunchPlan]) -> None:
    code = "def make():\n    def step():\n        pass\n    step.period = 7\n    return step\n"
    heat = heat_launches([plan(code, "race")], Course([(0,)] * 2))
    heat.records()
    assert heat.ridden is not None
    assert heat.ridden.spans == {0: 7}


class Scripted(aftermath.Aftermath):
    """How long something goes on behind each step is given [ms]."""

    def __init__(self, behind: list[float]):
        self._behind = iter(behind)

    def until_quiet(self, last_ns: int) -> int:
        return int(next(self._behind) * MS)


@pytest.mark.parametrize(
    ("behind", "taken", "expected"),
    [
        ([0], 10, False),  # quiet at once
        ([1.5], 10, False),  # threads that spin for a moment
        ([200] * 6, 10, False),  # threads that spin for long, as long behind one step as behind many
        ([10] * 6, 0.1, True),  # one step is always under way
        ([4] * 6, 6, True),  # the last part of each step is
        ([2_000] + [10] * 5, 10, True),  # a queue grows
        ([9, 0, 0, 5, 0, 0], 5, False),  # something happened to be there
    ],
)
def test_who_leaves_work(behind: list[float], taken: float, expected: bool) -> None:
    """Of steps that take 10 ms in a row."""
    found = Scripted(behind).work_behind_ns(0, 10 * MS, lambda: (int(taken * MS), 0))
    assert bool(found) is expected


class Array:
    """As one of JAX: computed in the background until somebody waits for it."""

    __module__ = "jax"

    def __init__(self, value: float = 0.5) -> None:
        self.value, self.is_computed, self.ndim = value, False, 0

    def block_until_ready(self) -> None:
        self.is_computed = True

    def __float__(self) -> float:
        assert self.is_computed
        return self.value


@pytest.fixture
def own_step(runtime: Callable[[str], ModuleType]) -> ModuleType:
    return runtime("own_step")


@pytest.mark.parametrize(
    ("shape", "loss"),
    [
        (lambda one, two: (one, {"parameters": [two, 3]}), 0.5),
        (lambda one, two: {"parameters": [one, two], "epoch": True}, 0.5),
        (lambda one, two: [one, two, None], 0.5),
    ],
)
def test_arrays_in_what_a_step_returns_are_waited_for(own_step: ModuleType, shape: Any, loss: float) -> None:
    made: list[Array] = []

    def step() -> Any:
        made[:] = Array(), Array()
        return shape(*made)

    known, first = own_step.judged(step, step())
    assert all(one.is_computed for one in made)
    assert known() == first == loss
    assert all(one.is_computed for one in made)


def test_of_a_step_that_returns_nothing_what_it_keeps_is_waited_for(own_step: ModuleType) -> None:
    parameters = {"weights": [Array()], "step": 0}

    def step() -> None:
        parameters["weights"] = [Array()]

    known, loss = own_step.judged(step, step())
    assert loss is None
    assert known() is None
    assert parameters["weights"][0].is_computed  # type: ignore[index]


def test_of_a_method_it_is_what_its_object_keeps(own_step: ModuleType) -> None:
    class Trainer:
        def __init__(self) -> None:
            self.weights = (Array(),)

        def step(self) -> None:
            self.weights = (Array(),)

    trainer = Trainer()
    known, _ = own_step.judged(trainer.step, trainer.step())
    known()
    assert trainer.weights[0].is_computed


def test_a_step_without_such_arrays_is_called_as_it_is(own_step: ModuleType) -> None:
    kept = [1.0, "words", {"a": (2.0,)}]

    def step() -> None:
        kept.append(1.0)

    assert own_step.judged(step, None) == (step, None)


def test_a_batch_that_is_fetched_ahead_is_not_waited_for(own_step: ModuleType) -> None:
    kept: list[Future[int]] = [Future()]

    def step() -> None:
        kept.append(Future())

    assert own_step.judged(step, None) == (step, None)


def test_what_only_looks_like_one_is_left_alone(own_step: ModuleType) -> None:
    """An event that nobody sets, or a process, has a wait() too."""
    event = threading.Event()

    def step() -> None:
        event.is_set()

    assert own_step.judged(step, None) == (step, None)
    assert own_step.pending([event]) == []
