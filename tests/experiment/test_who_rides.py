"""Who rides with whom."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment import phases
from timetrial.experiment.experiment import load_words
from timetrial.experiment.heats import heats_of
from timetrial.experiment.places import starts_on
from timetrial.experiment.runner import run_experiment
from timetrial.experiment.validate import validate
from timetrial.heats.heat import Ridden
from timetrial.results.results import Results

Run = Callable[..., Results]


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)


@pytest.fixture
def run(fake: FakeEngine, results_folder: Path, networks: Any) -> Run:
    def run(*words: str) -> Results:
        experiment = load_words(["network=mlp", *words], load_network=networks)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return run


def together(fake: FakeEngine) -> list[set[tuple[str, str]]]:
    """Backend and threads of those that were alive together, heat by heat."""
    heats: dict[int, set[tuple[str, str]]] = {}
    for plan in fake.log:
        if plan.heat is not None:
            who = (plan.case.backend, plan.case.settings.get("threads", ""))
            heats.setdefault(plan.heat, set()).add(who)
    return list(heats.values())


def test_equal_work_at_equal_threads_rides_together(run: Run, fake: FakeEngine) -> None:
    results = run("backend=fast,slow,other", "threads=1,2", "launches=3")
    heats = together(fake)
    assert len(heats) == 6
    assert all(len(heat) == 3 and len({threads for _, threads in heat}) == 1 for heat in heats)
    assert [row.ok for row in results.rows] == [3] * 6
    assert {row.ratio.n for row in results.rows if row.ratio} == {3}
    paddings = {plan.environment["TIMETRIAL_PADDING"] for plan in fake.log if plan.heat is not None}
    assert len(paddings) > 10  # each process lies elsewhere


@pytest.mark.parametrize(("effort", "first"), [("quick", 2), ("normal", 1)])
def test_in_the_first_heats_they_start_one_by_one_unless_quick(
    run: Run, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, effort: str, first: int
) -> None:
    """Which tells how long a start takes; then frameworks start side by side, as many as there is room for.
    What is native never does: it chooses between kernels by the clock."""
    monkeypatch.setattr(phases, "side_by_side_at_most", lambda launches, largest=0: min(launches, 3))
    fake.frameworks = ("slow", "other")
    run("backend=fast,slow,other", "threads=1,2", "launches=3", f"effort={effort}")
    seen = {(plan.block, plan.case.backend, plan.at_once) for plan in fake.log if plan.purpose == "speed"}
    assert seen == {
        *((block, "fast", 1) for block in (0, 1, 2)),
        *((0, backend, first) for backend in ("slow", "other")),
        *((block, backend, 2) for block in (1, 2) for backend in ("slow", "other")),
    }


def test_one_alone_and_isolated_launches_have_the_machine_to_themselves(run: Run, fake: FakeEngine) -> None:
    run("backend=fast", "threads=1,2", "launches=2")
    run("backend=fast,slow", "launches=2", "isolated=true")
    assert together(fake) == []
    assert {plan.heat for plan in fake.log} == {None}
    with pytest.raises(InputError, match="isolated' is 'perhaps'; expected a valid boolean"):
        run("backend=fast,slow", "isolated=perhaps")


def test_all_of_a_heat_have_the_same_processors(
    run: Run, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.control.cpus.allowed_cpus", lambda: frozenset(range(8)))
    run("backend=fast,slow", "threads=2", "launches=6")
    by_heat: dict[int, set[Any]] = {}
    for plan in fake.log:
        if plan.heat is not None:
            by_heat.setdefault(plan.heat, set()).add(plan.processors)
    assert all(len(own) == 1 for own in by_heat.values())
    assert len({one for own in by_heat.values() for one in own}) > 1
    assert {len(one) for own in by_heat.values() for one in own} == {2}


@pytest.mark.parametrize(
    ("rides_on", "starts", "others"),
    [
        ({2}, 1, [None]),
        ({2}, 2, [None, {0, 1, 3}]),
        ({2}, 6, [None, {0, 1, 3}, {0, 1, 3}, {0, 1, 3}, None, {0, 1, 3}]),
        ({4}, 3, [None, {5}, None]),  # of another kind
        ({0, 1}, 2, [None, None]),  # room enough
        (None, 2, [None, None]),  # they may have all
    ],
)
def test_who_starts_beside_another_has_another_processor_of_the_same_kind(
    rides_on: set[int] | None,
    starts: int,
    others: list[set[int] | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("timetrial.control.cpus.allowed_cpus", lambda: frozenset(range(6)))
    monkeypatch.setattr("timetrial.control.topology.kind_of", lambda cpu: cpu > 3)
    seen = set()
    for seed in range(20):
        found = starts_on(None if rides_on is None else frozenset(rides_on), starts, random.Random(seed))
        assert [one is None for one in found] == [one is None for one in others]
        assert all(one <= other for one, other in zip(found, others, strict=True) if one and other)
        apart = [one for one in found[:4] if one is not None]
        assert len({*apart}) == len(apart)
        seen.add(found)
    assert (len(seen) > 1) == (rides_on == {2} and starts > 1)  # by chance


def test_who_rides_on_one_processor_starts_on_another(
    run: Run, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But in the first heat; and nobody does who binds threads to what it finds, or has failed before."""
    monkeypatch.setattr("timetrial.control.cpus.allowed_cpus", lambda: frozenset(range(8)))
    monkeypatch.setattr("timetrial.control.topology.kind_of", lambda cpu: 0)
    monkeypatch.setattr(phases, "side_by_side_at_most", lambda launches, largest=0: max(1, min(launches, 2)))
    fake.frameworks = ("slow", "other", "flaky")
    courses: list[Any] = []
    heat = fake.heat

    def seen(plans: Any, course: Any) -> Any:
        courses.append((plans, course))
        return heat(plans, course)

    monkeypatch.setattr(fake, "heat", seen)
    run("backend=fast,slow,other", "threads=1", "launches=3", "effort=normal")
    assert [len(course.starts_on) for _, course in courses] == [1, 2, 2]
    assert courses[0][1].starts_on == (None,)
    for plans, course in courses[1:]:
        first, elsewhere = course.starts_on
        assert first is None
        assert len(elsewhere) == 1
        assert {plan.processors for plan in plans}.isdisjoint({elsewhere, None})
    courses.clear()
    run("backend=slow,other", "threads=1", "launches=2", "openmp.proc_bind=close")
    assert [(course.starts_on, len(course.alone)) for _, course in courses] == [((None,), 2)] * 2
    courses.clear()
    run("backend=slow,other", "threads=1", "launches=2", "environment.KMP_AFFINITY=compact")
    assert [len(course.alone) for _, course in courses] == [2, 2]
    courses.clear()
    run("backend=slow,other,flaky", "threads=1", "launches=6")
    alone = [{plans[side].case.backend for side in course.alone} for plans, course in courses]
    assert alone[0] == set()
    assert alone[-1] == {"flaky"}


def test_one_that_does_not_fit_by_itself_is_timed_all_the_same(fake: FakeEngine, networks: Any) -> None:
    experiment = load_words(["network=mlp", "backend=fast", "threads=1,2"], load_network=networks)
    ready = validate(experiment.cases, fake.engine())
    assert [len(heat) for heat in heats_of(ready, None, lambda one: 11, 10)] == [1, 1]


def test_a_heat_goes_on_without_one_that_failed_and_failed_again(run: Run, fake: FakeEngine) -> None:
    results = run("backend=fast,crashes,slow,flaky", "launches=4")
    sizes = [len(heat) for heat in together(fake)]
    assert sizes == [4, 4, 3, 3]  # PATIENCE: two failures
    assert {row.case.backend: row.ok for row in results.rows} == {
        "fast": 4,
        "crashes": 0,
        "slow": 4,
        "flaky": 3,
    }


def test_what_does_not_fit_rides_in_smaller_heats_with_the_reference(fake: FakeEngine, networks: Any) -> None:
    words = ["network=mlp", "backend=fast,slow,other,flaky,chancy", "reference=slow"]
    experiment = load_words(words, load_network=networks)
    ready = validate(experiment.cases, fake.engine())
    needed = {"fast": 4, "slow": 2, "other": 3, "flaky": 1, "chancy": 20}

    def heats(free: int) -> list[list[str]]:
        reference = experiment.spec.measure.reference
        found = heats_of(ready, reference, lambda one: needed[one.case.backend], free)
        return [[one.case.backend for one in heat] for heat in found]

    assert heats(30) == [["fast", "slow", "other", "flaky", "chancy"]]
    assert heats(7) == [["slow", "fast"], ["slow", "other", "flaky"], ["slow", "chancy"]]


def test_ratios_through_a_reference_that_rode_several_times(
    run: Run, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.experiment.phases.available_bytes", lambda: 1)
    monkeypatch.setattr("timetrial.experiment.phases.needed_bytes", lambda folder, one: 1)
    fake.factor = lambda plan: 1.0 + 0.5 * (plan.heat % 2)  # heats differ, and it cancels
    results = run("backend=slow,fast,other", "launches=4", "reference=slow")
    rows = {row.case.backend: row for row in results.rows}
    assert rows["slow"].ok == 8
    assert rows["fast"].ratio is not None
    assert rows["fast"].ratio.estimate == pytest.approx(0.5, rel=0.02)
    assert rows["other"].ratio is not None
    assert rows["other"].ratio.estimate == pytest.approx(0.75, rel=0.02)


def scattered(plan: Any) -> float:
    """A launch differs from the next by up to 40 %, each contender in its own way."""
    return 1.0 + 0.4 * random.Random(f"{plan.case.id} {plan.block}").random()


SIX = ("backend=fast,slow,other", "threads=1,2")


def test_heats_are_added_for_all_alike_until_the_ratios_are_narrow(run: Run, fake: FakeEngine) -> None:
    steady = run(*SIX)
    assert [row.ok for row in steady] == [4] * 6
    assert not [word for word in steady.warnings if "was asked for" in word]
    fake.factor = scattered
    wide = run(*SIX)
    assert [row.ok for row in wide] == [8] * 6
    (warning,) = [word for word in wide.warnings if "was asked for" in word]
    assert "the ratios are known to ±" in warning
    assert "±3 % was asked for" in warning
    assert "launches=16" in warning
    assert "4 to 8 launches each" in repr(wide)


def test_of_few_rows_the_median_may_be_narrow_by_luck(run: Run, fake: FakeEngine) -> None:
    for words in (("backend=fast",), ("backend=fast,slow",), ("backend=fast,slow", "threads=1,2")):
        assert {row.ok for row in run(*words)} == {6}
    assert {row.ok for row in run("backend=fast,slow", "effort=normal")} == {12}


def test_a_number_that_was_given_is_kept(run: Run, fake: FakeEngine) -> None:
    fake.factor = scattered
    results = run("backend=fast,slow", "launches=5")
    assert [row.ok for row in results] == [5, 5]
    assert not [word for word in results.warnings if "was asked for" in word]
    assert [row.ok for row in run("backend=fast,slow", "isolated=true")] == [6, 6]


def test_what_fails_does_not_go_on_for_ever(run: Run, fake: FakeEngine) -> None:
    assert [row.ok for row in run("backend=crashes,hangs")] == [0, 0]
    assert len([plan for plan in fake.log if plan.purpose == "speed"]) <= 4


@pytest.fixture
def ridden(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """`slow` is a step of somebody's own. What a heat with it says of it; hands back the courses of heats."""
    monkeypatch.setattr(phases, "is_callable_word", lambda word: word == "slow")
    courses: list[Any] = []
    plain = fake.heat

    def says(span: int = 1, goes_on: str | None = None) -> list[Any]:
        def heat(plans: Any, course: Any) -> Any:
            found = plain(plans, course)
            sides = {plan.case.backend: side for side, plan in enumerate(plans)}
            courses.append((sides, course))
            own = {sides["slow"]: goes_on} if goes_on and "slow" in sides else {}
            spans = {side: span if name == "slow" else 1 for name, side in sides.items()}
            found.ridden = Ridden(1.0, 1.0, [], spans, own)
            return found

        monkeypatch.setattr(fake, "heat", heat)
        return courses

    return says


def test_one_heat_tells_the_next_over_how_many_steps_a_time_repeats(
    run: Run, fake: FakeEngine, ridden: Callable[..., list[Any]]
) -> None:
    courses = ridden(span=8)
    run("backend=fast,slow", "launches=3")
    assert [course.spans[sides["slow"]] for sides, course in courses] == [1, 8, 8]
    assert {course.spans[sides["fast"]] for sides, course in courses} == {1}
    looked = [plan.measure.rhythm_ns > 0 for plan in fake.log if plan.heat and plan.case.backend == "slow"]
    assert looked == [True, False, False], "once is enough"
    assert not any(plan.measure.rhythm_ns for plan in fake.log if plan.case.backend == "fast")


def test_who_has_helpers_rides_by_itself_from_then_on(
    run: Run, fake: FakeEngine, ridden: Callable[..., list[Any]]
) -> None:
    ridden(goes_on="2 processes")
    results = run("backend=fast,other,slow", "launches=3")
    assert together(fake)[1:] == [{("fast", ""), ("other", "")}] * 3, "one heat was broken off"
    alone = [plan for plan in fake.log if plan.heat is None and plan.purpose == "speed"]
    assert [(plan.case.backend, plan.goes_on) for plan in alone] == [("slow", "2 processes")] * 3
    assert [row.ok for row in results.rows] == [3, 3, 3], "nothing of the broken heat is left"
