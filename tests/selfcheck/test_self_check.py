"""The self-check must pass on a machine that keeps the promise, and must say no on one that does not."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from rich.console import Console
from scipy import stats

from timetrial.errors import InputError, MeasurementError
from timetrial.experiment.engine import Engine
from timetrial.launch import Course
from timetrial.report.self_check import SelfCheckTable
from timetrial.selfcheck import checks, training
from timetrial.selfcheck.checks import CHECKS, Check
from timetrial.selfcheck.run import SelfCheck, SelfCheckInterrupted, go_on, self_check
from timetrial.selfcheck.tally import Seen, Tally, upper_bound
from timetrial.statistics.verdict import Verdict

EQUAL = Check("equal", ({"backend": "fast", "network": "mlp"},) * 2, 0.0, quick=4, full=30)
SLOWER = dataclasses.replace(EQUAL, name="slower", effect=0.05)


@pytest.fixture
def checked(fake: FakeEngine, results_folder: Path) -> Callable[..., SelfCheck]:
    def run(*which: Check, full: bool = False) -> SelfCheck:
        return self_check(results_folder, quiet=True, engine=fake.engine(), checks=which, full=full)

    return run


def second_is(factor: float) -> Callable[[Any], float]:
    return lambda plan: factor if plan.case.repeat == 2 else 1.0


def table(found: SelfCheck) -> str:
    console = Console(file=io.StringIO(), width=140, color_system=None)
    console.print(SelfCheckTable(found))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_machine_that_keeps_the_promise(checked: Callable[..., SelfCheck]) -> None:
    found = checked(EQUAL, full=True)
    assert found.faults == []
    (tally,) = found.tallies
    assert (len(tally.judged), tally.false) == (30, 0)
    assert tally.false_at_most == pytest.approx(1 - 0.05 ** (1 / 30))
    assert "Nothing is worse than promised" in table(found)
    assert "0 (at most 9.5 %)" in table(found)


def test_verdicts_between_equals_are_faults(checked: Callable[..., SelfCheck], fake: FakeEngine) -> None:
    fake.factor = second_is(1.06)
    found = checked(EQUAL)
    assert found.tallies[0].false == 4
    assert found.faults == ["equal: 4 of 4 verdicts are false, promised: 1% at most"]
    assert "! equal: 4 of 4" in table(found)


def test_a_difference_that_is_found(checked: Callable[..., SelfCheck], fake: FakeEngine) -> None:
    fake.factor = second_is(1.05)
    found = checked(SLOWER, full=True)
    assert found.faults == []
    assert found.tallies[0].found == 30
    assert "30 (at least 90 %)" in table(found)


def test_a_difference_that_is_missed_is_a_fault(checked: Callable[..., SelfCheck]) -> None:
    found = checked(SLOWER, full=True)
    assert "slower: 30 of 30 verdicts are false, promised: 1% at most" in found.faults
    assert "slower: found in 0 of 30, promised: 90%" in found.faults
    assert any("estimated" in words for words in found.faults)


def test_a_wrong_estimate_is_a_fault(checked: Callable[..., SelfCheck], fake: FakeEngine) -> None:
    fake.factor = second_is(1.08)
    (words,) = checked(SLOWER, full=True).faults
    assert words.startswith("slower: estimated +8.")


def test_races_that_were_not_judged_are_a_fault(checked: Callable[..., SelfCheck]) -> None:
    absent = dataclasses.replace(EQUAL, sides=({"backend": "absent", "network": "mlp"},) * 2)
    (words,) = checked(absent).faults
    assert "4 of 4 races were not judged: unavailable: absent needs" in words


def test_all_equals_are_counted_together(checked: Callable[..., SelfCheck], fake: FakeEngine) -> None:
    other = dataclasses.replace(EQUAL, name="another")
    assert checked(EQUAL, other, SLOWER).equals == (8, 0, upper_bound(0, 8))
    fake.factor = second_is(1.06)
    found = checked(EQUAL, other, SLOWER)
    assert found.equals == (8, 8, 1.0)
    assert "equals called different: 8 of 8 races (at most 100.0 %)" in table(found)


def raising(engine: Engine, at_pair: int, error: BaseException) -> Engine:
    """Its races are as before, but this pair, counted over all of them, raises."""
    pairs = 0

    def heat(*words: Any) -> Any:
        nonlocal pairs
        pairs += 1
        if pairs == at_pair:
            raise error
        return engine.heat(*words)

    return dataclasses.replace(engine, heat=heat)


def test_interrupted_it_counts_what_had_ended(results_folder: Path, fake: FakeEngine) -> None:
    engine = raising(fake.engine(), 10, KeyboardInterrupt())  # in the third race: the others took four each
    with pytest.raises(SelfCheckInterrupted) as stopped:
        self_check(results_folder, quiet=True, engine=engine, checks=[EQUAL])
    found = stopped.value.found
    assert (found.races, found.planned) == (2, 4)
    assert "interrupted after 2 of 4 races" in table(found)
    assert f"go on: timetrial self-check --resume {found.folder}" in table(found).replace("\n", "")
    rest = go_on(found.folder, quiet=True, engine=fake.engine(), checks=[EQUAL])
    assert (rest.races, rest.planned, len(rest.tallies[0].judged)) == (4, 4, 4)
    assert rest.tallies[0].races[:2] == found.tallies[0].races
    whole = self_check(results_folder / "whole", quiet=True, engine=fake.engine(), checks=[EQUAL])
    assert {one.effect for one in rest.tallies[0].races} == {one.effect for one in whole.tallies[0].races}


def test_only_a_self_check_of_these_checks_goes_on(results_folder: Path, fake: FakeEngine) -> None:
    found = self_check(results_folder, quiet=True, engine=fake.engine(), checks=[EQUAL])
    others = dataclasses.replace(EQUAL, sides=({"backend": "slow", "network": "mlp"},) * 2)
    with pytest.raises(InputError, match="another version of timetrial"):
        go_on(found.folder, quiet=True, engine=fake.engine(), checks=[others])
    with pytest.raises(InputError, match=r"is no self-check: it has no self-check\.json"):
        go_on(results_folder, quiet=True, engine=fake.engine(), checks=[EQUAL])


def test_json_has_every_race(checked: Callable[..., SelfCheck]) -> None:
    found = checked(EQUAL)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert len(document["checks"][0]["seen"]) == 4


@pytest.mark.parametrize(("events", "n"), [(0, 200), (3, 200), (1, 5)])
def test_the_bound_is_clopper_and_pearsons(events: int, n: int) -> None:
    reference = stats.binomtest(events, n).proportion_ci(0.90, "exact").high  # two-sided 90 %: 5 % above
    assert upper_bound(events, n) == pytest.approx(reference)
    assert upper_bound(n, n) == 1.0


@pytest.mark.parametrize(
    ("verdict", "equal", "different"),
    [("worse", True, False), ("better", True, True), ("same", False, True), ("inconclusive", False, False)],
)
def test_what_is_false(verdict: Verdict, equal: bool, different: bool) -> None:
    assert (EQUAL.is_false(verdict), SLOWER.is_false(verdict)) == (equal, different)


def test_one_false_verdict_in_many_is_chance() -> None:
    seen = [Seen("same", 0.0, 6, 1.0)] * 99
    assert Tally(EQUAL, [*seen, Seen("worse", 0.06, 6, 1.0)]).faults == []
    assert Tally(EQUAL, [*seen[:90], *[Seen("worse", 0.06, 6, 1.0)] * 10]).faults != []


def test_the_stressor_comes_late_and_goes(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    class Spinner:
        def __init__(self, words: list[str], **options: Any):
            started.append(self)
            self.alive = True

        def kill(self) -> None:
            self.alive = False

        def communicate(self) -> None:
            assert not self.alive

    monkeypatch.setattr(checks.subprocess, "Popen", Spinner)
    engine, end = checks.with_stressor(dataclasses.replace(fake.engine(), heat=fake.heat))
    for _ in range(3):
        engine.heat([], Course([]))
    assert started == []
    engine.heat([], Course([]))
    engine.heat([], Course([]))
    assert len(started) == len(os.sched_getaffinity(0))
    end()
    assert not any(one.alive for one in started)


def test_the_stressor_ends_with_us_however_we_end() -> None:
    code = (
        "import dataclasses, os, signal\n"
        "from timetrial.selfcheck import checks\n"
        "from timetrial.experiment.engine import real_engine\n"
        "engine = dataclasses.replace(real_engine(), heat=lambda plans, course: None)\n"
        "busy, _ = checks.with_stressor(engine, after_pairs=0)\n"
        "busy.heat([], None)\n"
        "print(open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    spinners = done.stdout.split()
    assert len(spinners) == len(os.sched_getaffinity(0)), done.stderr
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{one}").exists() for one in spinners) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{one}").exists() for one in spinners)


def test_a_race_that_fails_does_not_end_the_others(results_folder: Path, fake: FakeEngine) -> None:
    engine = raising(fake.engine(), 2, MeasurementError("no room for a record"))
    found = self_check(results_folder, quiet=True, engine=engine, checks=[EQUAL])
    assert (found.races, len(found.tallies[0].judged)) == (4, 3)
    assert found.faults == ["equal: 1 of 4 races were not judged: no room for a record"]


def test_what_needs_more_cpus_is_left_out_and_said(
    checked: Callable[..., SelfCheck], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.selfcheck.run.usable_cpus", lambda: 1)
    found = checked(EQUAL, dataclasses.replace(EQUAL, name="on two", threads=2))
    assert [one.check.name for one in found.tallies] == ["equal"]
    assert found.left_out == ["on two: 1 CPU"]
    assert "left out: on two: 1 CPU" in table(found)


def test_nobody_else_measures_between_its_races(results_folder: Path, fake: FakeEngine) -> None:
    taken = 0

    def lock() -> Any:
        nonlocal taken
        taken += 1
        return fake.lock()

    self_check(
        results_folder, quiet=True, engine=dataclasses.replace(fake.engine(), lock=lock), checks=[EQUAL]
    )
    assert taken == 1


def test_the_second_side_gets_the_larger_environment(results_folder: Path, fake: FakeEngine) -> None:
    other = dataclasses.replace(EQUAL, quick=1, disturbed=checks.with_other_environment)
    self_check(results_folder, quiet=True, engine=fake.engine(), checks=[other])
    sizes = {
        plan.position: len(plan.environment["TIMETRIAL_PADDING"])
        for plan in fake.log
        if plan.purpose == "race"
    }
    assert sizes == {0: 0, 1: 8000}


def test_steps_of_a_real_network_run() -> None:
    """21 updates against 20: 5 % more on any machine."""
    steps = {count: training._updates(count) for count in (20, 21)}
    assert training.UPDATES * 1.05 == 21
    for step in steps.values():
        step()


def test_every_check_has_its_number_and_runs_in_both() -> None:
    assert {check.name.split()[0] for check in CHECKS} == {"22", "23", "24", "25"}
    assert all(check.quick >= 1 and check.full >= 30 for check in CHECKS)
    assert sum(check.full for check in CHECKS if check.is_equal) >= 200
