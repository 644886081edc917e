"""Who starts beside whom in a pair, and what passes while the next one starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import FakeEngine, FakeHeat

from timetrial.cases import budget as budgets
from timetrial.races import Race, RaceInterrupted, Side, run_race
from timetrial.races.side import experiment_of

Raced = Callable[..., Race]


@pytest.fixture
def courses(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those of all pairs."""
    seen: list[Any] = []
    plain = fake.heat

    def heat(plans: Any, course: Any) -> FakeHeat:
        seen.append(course)
        return plain(plans, course)

    monkeypatch.setattr(fake, "heat", heat)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr("timetrial.control.cpus.allowed_cpus", lambda: frozenset({0, 1}))
    return seen


def test_frameworks_and_own_steps_start_together(fake: FakeEngine, raced: Raced, courses: list[Any]) -> None:
    fake.frameworks = ("fast", "slow")
    raced("backend=fast,slow")
    assert {one.starts_on for one in courses} == {(None, None)}
    assert {one.alone for one in courses} == {frozenset()}


def test_of_one_thread_one_starts_on_another_processor(
    fake: FakeEngine, raced: Raced, courses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.control.topology.kind_of", lambda cpu: "any")
    fake.frameworks = ("fast", "slow")
    found = raced("backend=fast,slow", "threads=1")
    for pair, course in zip(found.pairs, courses, strict=True):
        [own] = pair.processors or []
        assert course.starts_on == (None, frozenset({1 - own}))


def test_what_is_native_may_time_kernels_and_starts_alone(raced: Raced, courses: list[Any]) -> None:
    raced("backend=fast,slow")
    assert {one.alone for one in courses} == {frozenset({0, 1})}


def test_on_one_processor_they_start_in_turn(
    fake: FakeEngine, raced: Raced, courses: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    fake.frameworks = ("fast", "slow")
    raced("backend=fast,slow")
    assert {len(one.starts_on) for one in courses} == {1}


class Ending(FakeHeat):
    """Its launches end when they are asked for; `log` says when."""

    def __init__(self, log: list[str], number: int, launches: list[Any]):
        super().__init__(launches)
        self.log, self.number = log, number

    def records(self) -> list[Any]:
        self.log.append(f"{self.number} has ended")
        return super().records()


@pytest.fixture
def log(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """When a pair starts, and when the one before it has ended."""
    seen: list[str] = []

    def heat(plans: Any, course: Any) -> FakeHeat:
        number = plans[0].block
        seen.append(f"{number} starts")
        launches = [fake.launch(plan) for plan in plans]
        course.started()
        return Ending(seen, number, launches)

    monkeypatch.setattr(fake, "heat", heat)
    return seen


def test_a_pair_ends_while_the_next_one_starts_unless_a_look_comes_behind_it(
    fake: FakeEngine, raced: Raced, log: list[str]
) -> None:
    fake.frameworks = ("fast", "slow")
    raced("backend=fast,slow", confirm=False)
    assert log == [
        "0 starts", "1 starts", "0 has ended", "2 starts", "1 has ended", "3 starts",
        "2 has ended", "3 has ended",
    ]  # fmt: skip


def test_an_interrupt_keeps_the_pair_that_was_ending(fake: FakeEngine, raced: Raced, log: list[str]) -> None:
    def before(plan: Any) -> None:
        if plan.purpose == "race" and plan.block == 2:
            raise KeyboardInterrupt

    fake.before, fake.frameworks = before, ("fast", "slow")
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,slow")
    assert [one.number for one in stopped.value.race.pairs] == [0, 1]
    assert log[-1] == "1 has ended"


def test_sides_have_an_allocator_that_keeps_its_memory_unless_somebody_says_something(
    fake: FakeEngine, raced: Raced
) -> None:
    assert {case.settings.get("malloc") for case in raced("backend=fast,slow").cases} == {"keep"}
    assert "allocator keeps its memory" in repr(raced("backend=fast,slow"))
    left = raced("backend=fast,slow", "malloc=default")
    assert {case.settings["malloc"] for case in left.cases} == {"default"}
    assert "allocator keeps its memory" not in repr(left)
    assert {case.settings.get("malloc") for case in raced("backend=fast", "malloc=default,keep").cases} == {
        "default",
        "keep",
    }
    held = raced("backend=fast,slow", metric="peak_memory")
    assert {case.settings.get("malloc") for case in held.cases} == {None}, "what it keeps is held"


def test_where_one_side_says_something_of_its_allocator_the_other_is_left_alone(
    results_folder: Path, fake: FakeEngine
) -> None:
    """Otherwise `mine` with what `keep` stands for would race against `keep`, and be the same."""
    sides = [Side({"backend": "fast"}), Side({"backend": "fast", "malloc": "default"})]
    experiment = experiment_of(sides, {"network": "mlp"}, 1)
    found = run_race(experiment, results_folder, quiet=True, engine=fake.engine())
    assert [case.settings.get("malloc") for case in found.cases] == [None, "default"]
    told = experiment_of([sides[0]] * 2, {"network": "mlp", "environment.MALLOC_TRIM_THRESHOLD_": "5"}, 1)
    found = run_race(told, results_folder, quiet=True, engine=fake.engine())
    assert [case.settings.get("malloc") for case in found.cases] == [None, None]


def test_nothing_is_left_under_way_whoever_decides(
    fake: FakeEngine, raced: Raced, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the time passes while a pair starts: the pair before it has the clock's look, and decides."""
    own = SimpleNamespace(now=0.0)
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: own.now))

    def launched(plan: Any) -> None:
        own.now += 10.0

    fake.before, fake.frameworks = launched, ("fast", "slow")
    found = raced("backend=fast,fast", "budget=225s")
    started = [one for one in log if one.endswith("starts")]
    assert len(started) == len([one for one in log if one.endswith("ended")]) == len(found.pairs)
    assert found.verdict == "same"


def test_sides_that_fit_in_memory_once_end_before_the_next_ones_start(
    fake: FakeEngine, raced: Raced, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.races.racing.fit_twice", lambda folder, sides: False)
    fake.frameworks = ("fast", "slow")
    raced("backend=fast,slow", confirm=False)
    assert log[:3] == ["0 starts", "0 has ended", "1 starts"]


def test_each_challenger_is_confirmed_by_pairs_of_its_own(fake: FakeEngine, raced: Raced) -> None:
    """And what one of them lacks in time does not hide what another one has."""
    fake.frameworks = ("fast", "slow", "other")
    found = raced("backend=fast,slow,other")
    assert [duel.confirmed for duel in found.duels] == [True, True]
    assert [len(found.log_ratios(duel.case, "confirm")) for duel in found.duels] == [4, 4]
