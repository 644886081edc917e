"""The best answer in a given time: what is begun, what is left out, and that both are said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.cases import budget as budgets
from timetrial.cases.budget import Budget, seconds_of
from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.heats.heat import OutOfTimeError
from timetrial.races import Race
from timetrial.results.results import Results


@pytest.mark.parametrize(
    ("word", "seconds"),
    [("90s", 90), ("2m", 120), ("1h30m", 5400), ("1h 30m", 5400), ("0.5h", 1800), (45, 45), (1.5, 1.5)],
)
def test_a_time(word: object, seconds: float) -> None:
    assert seconds_of(word) == seconds


@pytest.mark.attempt
@pytest.mark.parametrize(
    "word", ["", "x", "2", "2m3", "-2m", 0, -1, "0s", True, float("inf"), float("nan"), [], "2d", "m"]
)
def test_no_time(word: object) -> None:
    with pytest.raises(InputError, match=r"expected a time such as 90s, 2m or 1h30m"):
        seconds_of(word)


class _Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, fake: FakeEngine) -> _Clock:
    """Each launch takes 10 s."""
    own = _Clock()
    monkeypatch.setattr(budgets, "time", own)

    def launched(plan: Any) -> None:
        own.now += 10

    fake.before = launched
    return own


def test_another_one_begins_if_it_can_end_in_time(clock: _Clock) -> None:
    budget = Budget(60.0)
    clock.now += 20  # proofs
    budget.begin()
    took = [5.0, 15.0, 5.0, 5.0]
    allowed = []
    for one in took:
        clock.now += one
        allowed.append(budget.allows_another())
    assert allowed == [True, True, True, False]  # at 50 s one of 15 s would end too late
    assert Budget(None).allows_another()
    assert not Budget(60.0, spent_s=61.0).allows_another()  # by an earlier session


@pytest.fixture
def run(results_folder: Path, fake: FakeEngine) -> Callable[..., Results]:
    def run(*words: str) -> Results:
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())

    return run


def test_a_run_ends_in_time_and_says_so(run: Callable[..., Results], clock: _Clock, fake: FakeEngine) -> None:
    """Two proofs of 10 s, then blocks of 20 s."""
    results = run("backend=fast,slow", "launches=6", "budget=90s")
    assert [row.ok for row in results] == [3, 3]
    assert clock.now - 1000.0 <= 90
    assert "its time was over after 3 of 6 launches each" in " ".join(repr(results).split())
    assert "does the rest" not in repr(results)


def test_enough_time_is_not_used_up(run: Callable[..., Results], clock: _Clock) -> None:
    results = run("backend=fast,slow", "launches=3", "budget=10m")
    assert [row.ok for row in results] == [3, 3]
    assert "its time was over" not in repr(results)


def test_however_short_each_case_is_launched_once(run: Callable[..., Results], clock: _Clock) -> None:
    results = run("backend=fast,slow", "launches=6", "budget=1s")
    assert [row.ok for row in results] == [1, 1]


@pytest.mark.parametrize(
    ("budget", "pairs", "verdict"),
    [("45s", "1 pair", None), ("100s", "4 pairs", "worse"), ("10m", "4 pairs and 4 to confirm", "worse")],
)
def test_a_race_judges_what_it_has(
    raced: Callable[..., Race], clock: _Clock, budget: str, pairs: str, verdict: str | None
) -> None:
    """Two proofs of 10 s, then pairs of 20 s; a look needs four of them."""
    found = raced("backend=fast,slow", f"budget={budget}")
    [duel] = found.duels
    assert duel.verdict == verdict
    assert clock.now - 1000.0 <= seconds_of(budget)
    assert found.confirmed is (True if budget == "10m" else None)
    said = " ".join(repr(found).split())
    assert pairs in said
    assert (f"its time was over after {pairs}: by their scatter" in said) == (budget != "10m")
    assert "--confirm" not in said, "confirming is the default: what was missing is time"
    if verdict is None:
        assert found.exit_code == 4
    elif budget != "10m":
        assert "about as many pairs again would confirm it" in said


def test_a_confirmation_that_its_time_ended_says_so(raced: Callable[..., Race], clock: _Clock) -> None:
    """Two proofs of 10 s, four pairs of 20 s, and one that confirms."""
    said = " ".join(repr(raced("backend=fast,slow", "budget=130s")).split())
    assert "its time was over after 4 pairs and 1 to confirm: by their scatter" in said


def test_half_of_the_budget_is_kept_to_confirm(
    raced: Callable[..., Race], clock: _Clock, fake: FakeEngine
) -> None:
    """A proof of 10 s and ten pairs of 20 s fit. Their scatter would show the difference at the planned look
    behind the sixth, too late to confirm it; the clock's own look, behind half of the time, is the fifth."""
    fake.factor = lambda plan: 1.2 + 0.055 * (-1) ** plan.block if plan.case.repeat == 2 else 1.0
    found = raced("backend=fast,fast", "budget=210s")
    assert [one.number for one in found.pairs if one.look][:1] == [4]
    assert (found.verdict, found.confirmed) == ("worse", True)
    assert found.duels[0].pairs == 5


def test_a_confirmation_may_take_the_budget_once_more(
    raced: Callable[..., Race], clock: _Clock, fake: FakeEngine
) -> None:
    """Where it is asked for, as pytest does; nothing else may."""
    found = raced("backend=fast,slow", "budget=130s", extends=True)
    assert (found.verdict, found.confirmed) == ("worse", True)
    assert found.end is not None
    assert found.end.extended
    assert 130 < clock.now - 1000.0 <= 260
    clock.now = 1000.0
    equal = raced("backend=fast,fast", "budget=60s", extends=True)
    assert equal.end is not None
    assert not equal.end.extended


def test_a_look_that_time_brought_is_as_strict_as_a_planned_one(
    raced: Callable[..., Race], clock: _Clock, fake: FakeEngine
) -> None:
    """Five pairs of equals are not called different: they are the same, or nothing is known."""
    fake.factor = lambda plan: 1 + 0.04 * (-1) ** plan.block if plan.case.repeat == 2 else 1.0
    found = raced("backend=fast,fast", "budget=120s")
    assert found.duels[0].pairs == 5
    assert found.pairs[-1].look
    assert found.verdict in ("same", "inconclusive")


def test_a_wrong_budget_is_said_in_one_sentence() -> None:
    with pytest.raises(InputError) as raised:
        load_words(["network=mlp", "backend=fast", "budget=soon"], load_network=fakes.network)
    assert (
        str(raised.value)
        == "command line, [measure]: budget is 'soon'; expected a time such as 90s, 2m or 1h30m."
    )


def test_a_pair_that_its_time_ends_does_not_count(
    raced: Callable[..., Race], fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a start, a first step or a round takes."""
    heat = fake.heat

    def slow(plans: Any, course: Any) -> Any:
        assert course.deadline is not None
        if len(fake.log) > 2 * (1 + 2):
            raise OutOfTimeError
        return heat(plans, course)

    monkeypatch.setattr(fake, "heat", slow)
    found = raced("backend=fast,slow", "budget=10h")
    assert found.end is not None
    assert (found.end.stop_reason, len(found.pairs)) == ("budget", 3)
    assert "its time was over after 3 pairs and within the next" in " ".join(repr(found).split())


def test_so_do_proofs(raced: Callable[..., Race], fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(plans: Any, at_once: int, done: Any, left_s: float | None) -> Any:
        assert left_s is not None
        assert left_s <= 10
        raise OutOfTimeError

    monkeypatch.setattr(fake, "together", slow)
    found = raced("backend=fast,slow", "budget=10s")
    assert found.end is not None
    assert found.end.stop_reason == "budget"
    assert "over before each side had started" in " ".join(repr(found).split())
    assert found.exit_code == 4
