"""What a race says about scripted sides, and that it says nothing it does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import numpy as np
import pytest
from fakes import FakeEngine

from timetrial.errors import InputError
from timetrial.experiment.experiment import load_words
from timetrial.races import Race, RaceInterrupted, resume_race, run_race
from timetrial.records.files import near
from timetrial.report.race import notes
from timetrial.results.loading import load
from timetrial.statistics.verdict import Rule

Raced = Callable[..., Race]


def second_is(factor: float, *, from_pair: int = 0, to_pair: int = 1000) -> Callable[[Any], float]:
    """The second of two equal sides takes so many times longer, in these pairs."""
    return lambda plan: factor if plan.case.repeat == 2 and from_pair <= plan.block < to_pair else 1.0


def interrupt_at(pair: int) -> Callable[[Any], None]:
    """Ctrl-C when this pair, from 0, begins."""

    def before(plan: Any) -> None:
        if plan.purpose == "race" and plan.block == pair:
            raise KeyboardInterrupt

    return before


def test_equals_are_the_same(raced: Raced, fake: FakeEngine) -> None:
    found = raced("backend=fast,fast")
    assert found.verdict == "same"
    assert found.exit_code == 0
    assert found.duels[0].pairs == 4
    assert found.effect is not None
    assert found.effect.low < 0 < found.effect.high
    assert "A/A" in repr(found)
    assert [plan.purpose for plan in fake.log] == ["proof", *["race"] * 8]


@pytest.mark.parametrize(("name", "content"), [("record.json", b"{"), ("stamps.bin", b"half")])
def test_a_damaged_launch_is_named_and_the_rest_stands(raced: Raced, name: str, content: bytes) -> None:
    whole = raced("backend=fast,slow")
    launches = sum(map(len, whole.launches.values()))
    file = sorted(whole.folder.glob(f"pairs/000/*/{name}"))[0]
    file.write_bytes(content)
    found = Race(whole.folder)
    assert (found.verdict, found.effect) == (whole.verdict, whole.effect)
    assert [str(file) in words for words in found.damaged] == [True]
    assert str(file) in "".join(repr(found).split())
    assert sum(map(len, found.launches.values())) == launches - 1


@pytest.mark.attempt
@pytest.mark.parametrize("content", [b"{", b"", b"[]", b"\xff", b'{"number": 0}'])
def test_a_damaged_pair_is_named_and_there_is_no_verdict_without_it(raced: Raced, content: bytes) -> None:
    whole = raced("backend=fast,slow")
    file = whole.folder / "pairs" / "001" / "pair.json"
    file.write_bytes(content)
    found = Race(whole.folder)
    assert len(found.pairs) == len(whole.pairs) - 1
    assert found.verdict is None
    assert found.duels[0].reason == "the records of 1 of its pairs are damaged"
    assert str(file) in "".join(repr(found).split())
    assert found.level(found.cases[0].id) is not None  # what can be read is shown
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.attempt
@pytest.mark.parametrize("content", [b"{", b"", b"[]", b'{"seconds": "long"}'])
def test_a_damaged_end_is_named_and_the_pairs_stand(raced: Raced, content: bytes) -> None:
    whole = raced("backend=fast,slow")
    (whole.folder / "ended.json").write_bytes(content)
    found = Race(whole.folder)
    assert (found.verdict, found.effect) == (whole.verdict, whole.effect)
    assert "ended.json" in found.damaged[0]
    assert "damaged, and left out" in " ".join(repr(found).split())


@pytest.mark.attempt
def test_a_race_with_a_damaged_pair_is_not_gone_on_with(raced: Raced, fake: FakeEngine) -> None:
    fake.before = interrupt_at(3)
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,slow")
    folder = stopped.value.race.folder
    (folder / "pairs" / "001" / "pair.json").write_text("{")
    with pytest.raises(InputError, match="Remove the pair's folder"):
        resume_race(folder, quiet=True, engine=fake.engine())


def test_equals_whose_proof_fails_are_not_raced(raced: Raced, fake: FakeEngine) -> None:
    found = raced("backend=wrong,wrong")
    assert found.verdict is None
    assert "wrong" in (found.duels[0].reason or "")
    assert [plan.purpose for plan in fake.log] == ["proof"]


def test_the_slower_is_worse_and_confirmed_by_pairs_of_its_own(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = second_is(1.05)
    found = raced("backend=fast,fast")
    assert found.verdict == "worse"
    assert found.confirmed is True
    assert found.exit_code == 1
    assert found.effect is not None
    assert 0.03 < found.effect.low < 0.05 < found.effect.high < 0.08
    assert [pair.stage for pair in found.pairs] == ["judge"] * 4 + ["confirm"] * 4
    assert "5.4 % slower [3.3, 7.5]" in repr(found)
    assert "4 pairs and 4 to confirm" in repr(found)


def test_worse_that_a_second_race_does_not_see_is_inconclusive(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = second_is(1.05, to_pair=4)
    found = raced("backend=fast,fast")
    assert found.verdict == "inconclusive"
    assert found.confirmed is False
    assert found.exit_code == 3
    assert "an independent second one found" in (found.duels[0].reason or "")
    assert "not confirmed" in repr(found)


def test_without_confirmation_it_says_so(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = second_is(1.05)
    found = raced("backend=fast,fast", confirm=False)
    assert found.verdict == "worse"
    assert found.confirmed is None
    assert len(found.pairs) == 4
    assert "not raced a second time, so not confirmed. Race with --confirm" in repr(found)


def test_the_faster_is_better(raced: Raced) -> None:
    found = raced("backend=slow,fast")
    assert found.verdict == "better"
    assert found.confirmed is True
    assert {one.stage for one in found.pairs} == {"judge", "confirm"}
    assert found.exit_code == 0
    assert "x faster [1.9" in repr(found)


def test_a_better_that_a_second_race_does_not_find_is_not_said(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = second_is(0.9, to_pair=4)
    found = raced("backend=fast,fast")
    assert found.verdict == "inconclusive"
    assert found.confirmed is False


def test_races_of_older_records_confirmed_what_is_worse(raced: Raced) -> None:
    found = raced("backend=slow,fast", confirms=("worse",))
    assert (found.verdict, found.confirmed) == ("better", None)
    file = found.folder / "race.json"
    written = json.loads(file.read_text())
    assert written.pop("confirms") == ["worse"]
    file.write_text(json.dumps(written))
    assert (Race(found.folder).verdict, Race(found.folder).confirmed) == ("better", None)


def test_a_small_difference_that_scatters_is_inconclusive_with_what_could_be_seen(
    raced: Raced, fake: FakeEngine
) -> None:
    fake.factor = lambda plan: 1.2 if (plan.block + plan.case.repeat) % 2 else 1.0
    found = raced("backend=fast,fast")
    assert found.verdict == "inconclusive"
    assert found.duels[0].pairs == 24
    assert found.minimal_detectable_effect is not None
    assert found.minimal_detectable_effect > 0.05
    assert "cannot be seen here" in repr(found)


def test_throughput_of_other_batch_sizes(raced: Raced) -> None:
    found = raced("backend=fast", "batch_size=64,128", metric="samples_per_s")
    assert found.verdict == "better"  # the fake's step does not depend on the batch
    assert found.effect is not None
    assert found.effect.estimate == pytest.approx(1.0, abs=0.02)
    assert "samples/s" in repr(found)


def test_memory_that_is_equal_has_no_scatter(raced: Raced) -> None:
    found = raced("backend=fast,slow", metric="peak_memory")
    assert found.verdict == "same"
    assert found.effect is not None
    assert (found.effect.low, found.effect.high) == (0.0, 0.0)


def test_several_challengers_each_against_the_first(raced: Raced) -> None:
    found = raced("backend=other,fast,slow")
    assert [duel.verdict for duel in found.duels] == ["better", "worse"]
    assert found.verdict == "worse"
    assert [len(pair.sides) for pair in found.pairs] == [3] * 4 + [2] * 8  # each confirmation is a duel
    assert len(found.to_json()["races"]) == 2


def test_a_crash_makes_a_pair_void_and_the_race_goes_on(raced: Raced) -> None:
    found = raced("backend=fast,flaky")
    assert found.verdict == "same"
    assert found.duels[0].void == 1
    assert [pair.void is not None for pair in found.pairs] == [False, True, *[False] * 3]
    assert "pair 2 is void: flaky: crash: once" in repr(found)


def test_repeated_crashes_end_it_with_the_evidence(raced: Raced) -> None:
    found = raced("backend=fast,crashes")
    assert found.verdict is None
    assert found.exit_code == 4
    assert len(found.pairs) == 3
    assert "3 of 3 pairs are void; the last: crashes: crash: the contender crashes" in repr(found)
    [said] = [line for line in notes(found) if "void" in line and "of 3" not in line]
    assert said.startswith("pairs 1, 2 and 3 are void: crashes: crash: the contender crashes")


@pytest.mark.parametrize(
    ("backends", "reason"),
    [
        ("fast,absent", "not judged: unavailable: absent needs the module absent"),
        ("absent,fast", "absent is unavailable"),
        ("fast,wrong", "wrong is wrong: gradient conv1.weight"),
    ],
)
def test_a_side_that_cannot_ride(raced: Raced, backends: str, reason: str) -> None:
    found = raced(f"backend={backends}")
    assert found.verdict is None
    assert found.exit_code == 4
    assert found.pairs == []
    assert reason in repr(found)


def test_one_of_three_that_cannot_ride_leaves_two(raced: Raced) -> None:
    found = raced("backend=slow,absent,fast")
    assert [duel.verdict for duel in found.duels] == [None, "better"]
    assert found.exit_code == 4


def test_times_that_are_not_positive_make_no_verdict(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = second_is(0.0)
    found = raced("backend=fast,fast")
    assert found.verdict is None
    assert "step times that are not positive" in repr(found)


@pytest.mark.parametrize(
    ("words", "metric", "said"),
    [
        (["backend=fast"], "step_time", "A race needs two sides, and there is one case."),
        (["backend=fast", "network=mlp,lenet5"], "step_time", "The sides differ in network (mlp, lenet5)"),
        (["backend=fast", "batch_size=32,64"], "step_time", "--metric samples_per_s"),
        (["backend=fast", "buckets=1,4"], "step_time", "differ in buckets (1, 4)"),
        (["backend=fast", "task=train,forward"], "peak_memory", "The sides differ in task (train, forward)"),
        (["backend=fast,slow"], "step_tme", "There is no metric 'step_tme'. Did you mean 'step_time'?"),
    ],
)
def test_what_cannot_be_a_race(
    words: list[str], metric: Any, said: str, results_folder: Path, fake: FakeEngine
) -> None:
    given = words if any(word.startswith("network") for word in words) else ["network=mlp", *words]
    experiment = load_words(given, load_network=fakes.network)
    with pytest.raises(InputError) as error:
        run_race(experiment, results_folder, metric=metric, engine=fake.engine())
    assert said in str(error.value)
    assert fake.log == []


@pytest.fixture
def crashing(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From this pair on the second side crashes."""
    plain = fake.launch

    def crashing(first: int) -> None:
        def launch(plan: Any) -> Any:
            record = plain(plan)
            if plan.purpose == "race" and plan.position == 1 and plan.block >= first:
                return record.model_copy(update={"outcome": "crash", "reason": "SIGSEGV"})
            return record

        monkeypatch.setattr(fake, "launch", launch)

    return crashing


def undecided(plan: Any) -> float:
    """Pairs that scatter by 20 %."""
    return 1.2 if plan.block % 2 and plan.position == 1 else 1.0


def swinging(plan: Any) -> float:
    """10 % slower, by 8 % more in one pair and less in the next."""
    return 1.1 + 0.08 * (-1) ** plan.block if plan.case.repeat == 2 else 1.0


def test_crashes_after_a_look_leave_no_verdict(
    raced: Raced, fake: FakeEngine, crashing: Callable[[int], None]
) -> None:
    fake.factor = undecided
    crashing(7)
    found = raced("backend=fast", "threads=1,2")
    assert [pair.void is not None for pair in found.pairs] == [False] * 7 + [True] * 3
    assert (found.verdict, found.exit_code, found.effect) == (None, 4, None)
    assert "3 of 10 pairs are void; the last: fast threads=2: crash: SIGSEGV" in repr(found)
    assert found.to_json()["reason"].startswith("3 of 10 pairs are void")


def test_crashes_in_the_confirmation_leave_no_verdict(
    raced: Raced, fake: FakeEngine, crashing: Callable[[int], None]
) -> None:
    fake.factor = second_is(1.05)
    crashing(4)
    found = raced("backend=fast,fast")
    assert (found.verdict, found.confirmed, found.exit_code) == (None, False, 4)
    reason = found.duels[0].reason or ""
    assert reason.startswith(
        "a first race found +5.4 %, an independent second one was not judged: 3 of 7 pairs"
    )


def test_interrupted_after_a_look_it_says_so(raced: Raced, fake: FakeEngine) -> None:
    fake.factor, fake.before = undecided, interrupt_at(8)
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,fast")
    assert stopped.value.race.verdict is None
    assert "not judged: interrupted" in repr(stopped.value.race)


def test_ctrl_c_keeps_the_pairs_that_ended(raced: Raced, fake: FakeEngine) -> None:
    fake.before = interrupt_at(3)
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,slow")
    assert len(stopped.value.race.pairs) == 3
    assert stopped.value.race.verdict is None
    reason = stopped.value.race.duels[0].reason or ""
    assert re.fullmatch(
        r"interrupted after 3 pairs; so far \+\S+ % \[\S+, \S+\], which is no verdict", reason
    )


def test_an_interval_so_far_is_no_verdict(raced: Raced, fake: FakeEngine) -> None:
    fake.before, fake.factor = interrupt_at(5), swinging
    with pytest.raises(RaceInterrupted) as stopped:
        raced("backend=fast,fast")
    [duel] = stopped.value.race.duels
    assert duel.verdict is None
    assert duel.effect is None
    number = r"([+-]\S+)"
    so_far = rf"interrupted after 5 pairs; so far {number} % \[{number}, {number}\], which is no verdict"
    found = re.fullmatch(so_far, duel.reason or "")
    folder = str(near(stopped.value.race.folder))
    rest = f"tt.load({folder!r}) shows it; tt.resume({folder!r}) does the rest."
    assert str(stopped.value) == f"{duel.challenger}: {duel.reason}. {rest}"
    assert found is not None
    center, low, high = map(float, found.groups())
    assert low <= 10.0 <= high
    assert center == pytest.approx(10.0, abs=3.0)


def test_it_is_read_again_from_its_folder(raced: Raced) -> None:
    found = raced("backend=fast,slow")
    again = load(found.folder)
    assert isinstance(again, Race)
    assert again.to_json() == found.to_json()
    json.dumps(found.to_json(), allow_nan=False)


def test_the_same_pairs_make_the_same_verdict_under_the_rule_that_was_asked(raced: Raced) -> None:
    strict = raced("backend=fast,fast", rule=Rule(min_effect=0.001, equivalence=0.0011))
    assert strict.verdict == "inconclusive"
    assert strict.record.rule.equivalence == 0.0011


def test_every_launch_has_another_environment_size(raced: Raced, fake: FakeEngine) -> None:
    raced("backend=fast,fast")
    sizes = {len(plan.environment["TIMETRIAL_PADDING"]) for plan in fake.log if plan.purpose == "race"}
    assert len(sizes) > 6


def test_explain_has_all_that_a_failed_test_must_show(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = second_is(1.05)
    found = raced("backend=fast,fast", "threads=1")
    text = found.explain()
    for words in (
        "5.4 % slower [3.3, 7.5]",
        "99.9 % over 4 pairs",
        "confirmed by an independent second race",
        "base        ",
        "us [",
        "each pair   +",
    ):
        assert words in text
    assert "again       timetrial race network=mlp backend=fast,fast threads=1 seed=1" in text


def test_both_sides_of_a_pair_have_the_same_processors(
    raced: Raced, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.control.cpus.allowed_cpus", lambda: frozenset({0, 1, 5}))
    found = raced("backend=fast,other", "threads=2")
    by_pair: dict[int, set[frozenset[int] | None]] = {}
    for plan in fake.log:
        if plan.purpose == "race":
            by_pair.setdefault(plan.block, set()).add(plan.processors)
    assert all(len(one) == 1 for one in by_pair.values())
    sets = [next(iter(one)) for one in by_pair.values()]
    assert all(one is not None and len(one) == 2 for one in sets)
    assert len(set(sets)) > 1  # others for other pairs
    assert [frozenset(pair.processors or ()) for pair in found.pairs] == sets


@pytest.mark.parametrize("words", [["threads=1", "affinity=0"], ["threads=2"], []])
def test_whoever_says_where_or_needs_all_is_left_alone(
    raced: Raced, fake: FakeEngine, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timetrial.control.cpus.allowed_cpus", lambda: frozenset({0, 1}))
    found = raced("backend=fast,other", *words)
    assert {plan.processors for plan in fake.log} == {None}
    assert {pair.processors for pair in found.pairs} == {None}


def test_json_has_the_levels_and_all_pairs(raced: Raced) -> None:
    document = raced("backend=fast,fast").to_json()
    assert len(document["log_ratios"]) == document["pairs"] == 4
    levels = document["levels"]
    assert len(levels) == 2
    assert all(one["low"] < one["estimate"] < one["high"] for one in levels.values())


def test_launches_of_two_kinds_are_said(raced: Raced, fake: FakeEngine) -> None:
    fake.factor = lambda plan: 1.3 if plan.case.repeat == 2 and plan.block % 3 == 0 else 1.0
    found = raced("backend=fast,fast", confirm=False)
    assert found.duels[0].pairs >= 10
    assert "fast repeat=2: its launches are of two kinds, 30 % apart" in repr(found)
    assert "fast repeat=1: its launches" not in repr(found)
    assert "ties" not in repr(found)


def test_a_clock_too_coarse_for_the_steps_is_said(raced: Raced, fake: FakeEngine) -> None:
    def to_a_millisecond(plan: Any) -> float:
        scatter = np.random.default_rng(plan.block * 100 + plan.position).normal()
        return 1_000_000.5 / (fakes.STEP_NS["fast"] * (1 + 0.005 * float(scatter)))

    fake.factor = to_a_millisecond
    assert "ties: the clock has ticks of 1000000 ns" in repr(raced("backend=fast,fast"))
