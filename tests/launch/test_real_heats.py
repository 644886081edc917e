"""Heats of real processes: who fails leaves, the others take all their turns, and nothing stopped is left."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launching import MS, SHORT, make_plan, words

from timetrial.analysis.heats import levels_of, turn_times
from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.control.cpus import format_cpus
from timetrial.heats.lengths import FEWEST_WARMUP_STEPS, repeats_of
from timetrial.launch import Course, LaunchPlan, heat_launches, run_launch, schedule
from timetrial.launch.segments import FIRST_LOSSES
from timetrial.processes.contender_process import ContenderProcess
from timetrial.records.model import LaunchRecord
from timetrial.results.results import LaunchFiles, analyzed
from timetrial.workloads import prepare

ROUNDS = 6
ENOUGH_ROUNDS = 15  # of four steps at least, however slow the machine is: a failure behind the 30th comes
BUDGET_NS = 1_000 * MS
CPUS = os.sched_getaffinity(0)
WORK = {"null.work_units": "900"}  # about a millisecond


def heat(plans: list[LaunchPlan], rounds: int = ROUNDS, budget_ns: int = BUDGET_NS) -> list[LaunchRecord]:
    order = schedule(len(plans), rounds, random.Random(1))
    return heat_launches([replace(plan, heat=1) for plan in plans], Course(order, budget_ns)).records()


def null(
    folder: Path,
    name: str,
    *,
    progress_timeout_s: float = 20.0,
    memory: str = "none",
    **settings: str,
) -> LaunchPlan:
    limits = replace(SHORT.limits, progress_timeout_s=progress_timeout_s)
    named = {"memory.cap": memory, **{f"null.{key}": value for key, value in settings.items()}}
    return make_plan(folder / name, "null", settings={**WORK, **named}, measure=replace(SHORT, limits=limits))


def took_all_its_turns(record: LaunchRecord, rounds: int = ROUNDS) -> bool:
    assert record.outcome == "ok", words(record)
    turns = [segment for segment in record.segments if segment.kind == "turn"]
    assert len(record.turns) <= rounds + repeats_of(rounds)
    assert len(turns) - len(record.turns) in (0, 1)  # the last one may have ended it
    return {turn.round for turn in record.turns} == set(range(rounds))


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        ("throw", "crash"),
        ("abort", "crash"),
        ("exit", "crash"),
        ("nan", "nan"),
        ("grow", "capped"),
    ],
)
def test_the_others_go_on(tmp_path: Path, failure: str, outcome: str) -> None:
    plans = [
        null(tmp_path, "first"),
        null(tmp_path, "fails", fail=failure, fail_after="30", memory="256MiB"),
        null(tmp_path, "last"),
    ]
    first, failed, last = heat(plans, ENOUGH_ROUNDS, budget_ns=60_000 * MS)
    assert failed.outcome == outcome, words(failed)
    assert not took_all_its_turns(failed.model_copy(update={"outcome": "ok"}), ENOUGH_ROUNDS)
    analyzed(LaunchFiles(failed, plans[1].folder))  # what it left can be read
    assert took_all_its_turns(first, ENOUGH_ROUNDS)
    assert took_all_its_turns(last, ENOUGH_ROUNDS)


@pytest.mark.skipif(len(CPUS) < 2, reason="machine: one CPU")
def test_who_starts_elsewhere_rides_where_the_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, rides_on = (frozenset({cpu}) for cpu in sorted(CPUS)[:2])
    plans = [replace(null(tmp_path, name), heat=1, processors=rides_on) for name in "abc"]
    course = Course(schedule(3, ROUNDS, random.Random(1)), BUDGET_NS, starts_on=(elsewhere,))
    masks: list[set[int]] = []  # of those who have started, as the next one does
    begun: list[ContenderProcess] = []
    spawn = ContenderProcess._spawn

    def spawns(self: ContenderProcess, *arguments: Any) -> None:
        masks.extend(os.sched_getaffinity(one.pid) for one in begun if one.pid is not None)
        spawn(self, *arguments)
        begun.append(self)

    monkeypatch.setattr(ContenderProcess, "_spawn", spawns)
    records = heat_launches(plans, course).records()
    started = [record.command[record.command.index("--affinity") + 1] for record in records]
    assert started == [format_cpus(elsewhere)] * 3
    assert masks == [rides_on] * 3  # they leave it before the next one starts
    for record in records:
        assert took_all_its_turns(record)
        assert {thread.allowed_cpus for thread in record.threads} == {format_cpus(rides_on)}
        assert all(setting.name != "affinity" for setting in record.settings), "it kept to its processors"


def test_a_hang_ends_and_one_that_starts_slowly_is_waited_for(tmp_path: Path) -> None:
    plans = [
        null(tmp_path, "first"),
        null(tmp_path, "hangs", fail="hang", fail_after="30", progress_timeout_s=1.0),
        null(tmp_path, "late", fail="slow_start"),
    ]
    first, hung, late = heat(plans, ENOUGH_ROUNDS, budget_ns=60_000 * MS)
    assert hung.outcome == "hang", words(hung)
    assert took_all_its_turns(first, ENOUGH_ROUNDS)
    assert took_all_its_turns(late, ENOUGH_ROUNDS)


def test_what_timed_parts_have_kept_is_not_held_by_the_turns(tmp_path: Path) -> None:
    first, second = heat([make_plan(tmp_path / name, "eigen", network="mlp@1024x3") for name in "ab"], 2)
    for record in (first, second):
        assert "detailed" in {segment.kind for segment in record.segments}
        by_phase = {one.phase: one for one in record.memory.phases}
        gradients = 4 * 1024 * 1024 * 2  # of the layers between equal widths
        grown = (record.memory.held or 0) - by_phase["first step"].anonymous_bytes
        assert grown < gradients / 2, "whole steps keep none"


@pytest.mark.alone
@pytest.mark.effect("null.work_units")
def test_levels_of_contenders_with_a_known_truth(tmp_path: Path) -> None:
    units = ("600", "1200", "600")
    plans = [
        make_plan(tmp_path / str(place), "null", settings={"null.work_units": one}, measure=SHORT)
        for place, one in enumerate(units)
    ]
    records = heat(plans)
    turns = [
        turn_times(record, LaunchFiles(record, plan.folder).steps())
        for plan, record in zip(plans, records, strict=True)
    ]
    # By median steps: one stall moves the time per step of so few turns, as it should.
    levels = [one.median_ns for one in levels_of([one for one in turns if one is not None])]
    assert levels[1] / levels[0] == pytest.approx(2.0, rel=0.2)
    assert levels[2] / levels[0] == pytest.approx(1.0, rel=0.1)


def own(folder: Path, module: str, monkeypatch: pytest.MonkeyPatch, text: str) -> LaunchPlan:
    """A step of the user's own, in a module of this name."""
    (folder / f"{module}.py").write_text(text)
    monkeypatch.chdir(folder)
    workload = Workload(NO_NETWORK, NO_NETWORK, None, {})
    return LaunchPlan(
        case=Case(f"{module}:make", workload, settings={"threads": "1"}),
        prepared=prepare(workload, seed=1, epochs=1),
        purpose="speed",
        folder=folder / f"launch-{module}",
        measure=SHORT,
    )


PLAIN = "def make():\n    return lambda: sum(range(20_000))\n"
PRINTS = """
import sys
def make():
    steps = 0
    def step():
        nonlocal steps
        steps += 1
        if steps == 120:
            sys.stdout.write("x" * 100_000_000)
        return sum(range(20_000))
    return step
"""


def test_one_that_prints_100_mb_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, loud = heat(
        [own(tmp_path, "quiet", monkeypatch, PLAIN), own(tmp_path, "prints", monkeypatch, PRINTS)]
    )
    assert took_all_its_turns(quiet)
    assert took_all_its_turns(loud)
    assert 0 < len(loud.stdout) < 100_000  # the record keeps the end


SLOW = "import time\ndef make():\n    return lambda: time.sleep(0.2)\n"


def test_one_with_long_steps_warms_up_for_few_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for one in each of the pieces in which a warm-up is judged."""
    plans = [own(tmp_path, "plain", monkeypatch, PLAIN), own(tmp_path, "slow", monkeypatch, SLOW)]
    plain, slow = heat([replace(plan, measure=replace(SHORT, warmup_ns=100 * MS)) for plan in plans])
    taken = [sum(one.steps for one in each.segments if one.kind == "warmup") for each in (plain, slow)]
    assert taken[0] > FEWEST_WARMUP_STEPS
    assert taken[1] == 1  # of a contender that a proof judges, FEWEST_WARMUP_STEPS
    assert 1 + FEWEST_WARMUP_STEPS == FIRST_LOSSES  # all that its launch's beginning is judged by
    assert slow.outcome == "ok", words(slow)


def test_losses_behind_a_rewind_are_not_those_that_the_proof_went_on_to(tmp_path: Path) -> None:
    """However few steps a launch takes before its turns: they begin again with the first."""
    proof = run_launch(make_plan(tmp_path / "proof", "eigen", purpose="proof")).parity
    assert proof is not None
    assert len(proof.losses) > 2
    brief = replace(SHORT, warmup_ns=1, detailed_steps=0)
    plans = [make_plan(tmp_path / str(number), "eigen", measure=brief, proof=proof) for number in range(2)]
    for record in heat(plans, budget_ns=60_000 * MS):
        assert took_all_its_turns(record)


MOVES = """
import os
def make():
    steps = 0
    def step():
        nonlocal steps
        steps += 1
        if steps == 60:
            os.sched_setaffinity(0, set(range(os.cpu_count())))
        return sum(range(20_000))
    return step
"""


@pytest.mark.skipif(len(CPUS) < 2, reason="machine: needs two processors")
def test_one_that_moves_is_a_mismatch_and_the_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [own(tmp_path, "stays", monkeypatch, PLAIN), own(tmp_path, "moves", monkeypatch, MOVES)]
    stays, moves = heat([replace(plan, processors=frozenset({min(CPUS)})) for plan in plans])
    assert took_all_its_turns(stays)
    assert moves.outcome == "mismatch", words(moves)
