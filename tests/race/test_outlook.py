"""What a race says before its verdict, and of what would decide it."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.analysis.outlook import outlook, pairs_that_decide
from timetrial.races import Race, RaceInterrupted
from timetrial.races.forecast import race_forecast
from timetrial.races.pace import Work, pace_of
from timetrial.records.race import PairRecord
from timetrial.report.deciding import deciding_words
from timetrial.report.race_forecast import forecast_lines
from timetrial.statistics.verdict import LOOKS, Rule, older_errors, shared_errors

Raced = Callable[..., Race]
WORK = Work(frozenset({"fast", "slow"}), frozenset({("mlp", 64, "train")}))
MACHINE = {"cpu": "Test CPU", "usable_cpus": 2, "cpus": 2}


def pairs(*values: float, seconds: float = 8.0, scatter: float = 0.1, rounds: int = 25) -> list[PairRecord]:
    return [
        PairRecord(
            number=number, stage="judge", sides=["base", "mine"], rounds=[[0, 1]] * rounds, seconds=seconds,
            log_ratios={"mine": {"mean": value}}, scatter={"mine": scatter},
        )
        for number, value in enumerate(values)
    ]  # fmt: skip


def test_one_pair_says_a_ratio_with_a_wide_interval_and_what_is_missing() -> None:
    seen = outlook(pairs(0.09), "mine", Rule())
    assert seen is not None
    assert seen.estimate == pytest.approx(math.expm1(0.09))
    assert seen.low < 0 < seen.high
    assert seen.needed in LOOKS
    assert seen.seconds_left == pytest.approx(8.0 * (seen.needed - 1))
    assert outlook([], "mine", Rule()) is None
    assert outlook(pairs(0.09), "another", Rule()) is None


def test_the_more_pairs_scatter_the_more_are_needed() -> None:
    needed = [pairs_that_decide(0.0, scatter, Rule()) for scatter in (0.01, 0.03, 0.06, 0.15)]
    assert needed == sorted(needed, key=lambda one: one or 0)
    assert needed[0] == 6
    assert needed[-1] is not None
    assert needed[-1] > 24, "beyond the rule's last look"
    assert pairs_that_decide(0.0, 5.0, Rule()) is None


def test_a_plain_difference_is_decided_at_the_first_look() -> None:
    assert pairs_that_decide(math.log(1.5), 0.03, Rule()) == 4
    assert pairs_that_decide(math.log(1.5), 0.03, Rule(), beyond=4) == 6


def test_looks_share_one_percent_and_the_clock_takes_a_planned_one() -> None:
    assert sum(Rule().errors) == pytest.approx(0.01)
    assert all(sum(shared_errors(number)) == pytest.approx(0.01) for number in range(1, 9))
    asked = Rule().looking_at([5, 9])
    assert asked.looks == (4, 5, 8, 9, 16, 24)
    assert asked.errors == Rule().errors
    assert Rule().looking_at([2, 30]).looks == LOOKS


def test_a_look_that_the_clock_brings_may_err_as_the_planned_one_it_replaces() -> None:
    assert Rule().error_at(5) == Rule().error_at(6)
    assert Rule().error_at(4) < Rule().error_at(5) < Rule().error_at(17)


def test_more_pairs_than_usual_have_further_looks() -> None:
    assert Rule().up_to(24) == Rule()
    assert Rule().up_to(60).looks == (*LOOKS, 36, 54, 60)
    assert Rule().up_to(10).looks == (4, 6, 8, 10)
    with pytest.raises(ValueError, match="expected 4 or more"):
        Rule().up_to(3)


def test_races_of_older_records_keep_their_rule(raced: Raced) -> None:
    """Of version 0.1: four looks, a fifth trimmed, the last look with more of the error."""
    import json

    found = raced("backend=fast,slow", confirm=False)
    file = found.folder / "race.json"
    written = json.loads(file.read_text())
    written["rule"] = {
        "min_effect": 0.03, "equivalence": 0.05, "looks": [6, 10, 16, 24], "confidence": 0.995,
    }  # fmt: skip
    file.write_text(json.dumps(written))
    rule = Race(found.folder).rule
    assert rule.errors == pytest.approx((0.002, 0.002, 0.002, 0.004))
    assert rule.errors == pytest.approx(older_errors(0.995, 4))
    assert rule.trim == 0.2
    assert [rule.confidence_at(look) for look in rule.looks] == pytest.approx([0.996] * 3 + [0.992])


def test_sigterm_ends_a_race_from_python_as_ctrl_c_does(raced: Raced, fake: FakeEngine) -> None:
    """And the program's own handler is there again behind it."""

    def before(plan: Any) -> None:
        if plan.purpose == "race" and plan.block == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    fake.before = before
    with pytest.raises(RaceInterrupted, match=r"so far \+\S+ % .*tt\.resume") as stopped:
        raced("backend=fast,slow")
    assert len(stopped.value.race.pairs) == 2
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_race_that_pairs_leave_open_says_what_would_decide_it(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = lambda plan: 1.2 if (plan.block + plan.case.repeat) % 2 else 1.0
    found = raced("backend=fast,fast")
    [duel] = found.duels
    words = deciding_words(found, duel)
    assert "pairs would decide it" in words
    assert "--most-pairs" in words
    assert "24 pairs do not decide it: by their scatter about" in " ".join(repr(found).split())
    more = raced("backend=fast,fast", rule=Rule().up_to(81))
    assert more.duels[0].pairs > 24
    assert more.again.endswith("--most-pairs 81")


def test_a_forecast_goes_by_earlier_races_on_this_machine(raced: Raced, results_folder: Path) -> None:
    assert pace_of(results_folder, MACHINE, WORK) is None
    for _ in range(2):
        raced("backend=fast,slow")
    seen = pace_of(results_folder, MACHINE, WORK)
    assert seen is not None
    assert seen.races == 2
    assert 0 < seen.scatter < 0.05
    assert pace_of(results_folder, {**MACHINE, "cpu": "Another"}, WORK) is None
    assert pace_of(results_folder, MACHINE, replace(WORK, backends=frozenset({"mine:a"}))) is None
    other = pace_of(results_folder, MACHINE, replace(WORK, backends=frozenset({"fast"})))
    assert other is not None
    assert (other.scatter, other.pair_s) == (seen.scatter, None), "what a pair takes is of other work"
    expected = race_forecast([], {}, Rule(), confirm=True, pace=seen, budget_s=60.0)
    assert (expected.scatter, expected.pair_s, expected.earlier_races) == (seen.scatter, seen.pair_s, 2)
    said = "\n".join(forecast_lines(expected, ["fast", "slow"]))
    assert "in 2 earlier races here pairs scattered by" in said
    assert "typical" not in said
    without = race_forecast([], {}, Rule(), confirm=True)
    assert "typical, no earlier race here tells" in "\n".join(forecast_lines(without, ["fast", "slow"]))
