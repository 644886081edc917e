"""What changed from one result to a later one: only what intervals and records carry is said."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEngine
from scipy import stats
from typer.testing import CliRunner

import timetrial as tt
from timetrial.changes.facts import changes_between
from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.races import Race
from timetrial.statistics.intervals import positive_location
from timetrial.statistics.movement import Movement, beyond_chance, movement

Run = Callable[..., tt.Results]
WORDS = ("backend=fast,slow,other", "threads=1", "launches=5")
OLD = Path(__file__).parents[1] / "records" / "1"


def slower(backend: str, by: float) -> Callable[[Any], float]:
    """Factor of a script: that one contender, with some scatter of launches."""

    def factor(plan: Any) -> float:
        scatter = 1 + 0.002 * math.sin(7 * plan.block + len(plan.case.backend))
        return scatter * (by if plan.case.backend == backend else 1.0)

    return factor


@pytest.fixture
def old(fake: FakeEngine, run: Run) -> tt.Results:
    fake.factor = slower("", 1.0)
    return run(*WORDS)


# ------------------------------------------------------------------------------------------------ numbers


def test_a_movement_is_welchs_interval() -> None:
    rng = np.random.default_rng(1)
    for sizes in ((4, 4), (4, 3), (2, 4)):
        old, new = (np.exp(rng.normal(size=size) * 0.03) for size in sizes)
        found = movement(positive_location(list(old)), positive_location(list(new)))  # type: ignore[arg-type]
        known = stats.ttest_ind(np.log(new), np.log(old), equal_var=False)
        low, high = known.confidence_interval(0.95)
        assert found is not None
        assert found.p_value == pytest.approx(known.pvalue)
        assert (math.log1p(found.low), math.log1p(found.high)) == pytest.approx((low, high))


def test_one_launch_says_nothing_and_equal_ones_say_all() -> None:
    one, two = positive_location([100.0]), positive_location([100.0, 100.0])
    other = positive_location([110.0, 110.0])
    assert one is not None
    assert two is not None
    assert other is not None
    assert movement(one, two) is None
    assert movement(two, two) == Movement(0.0, 0.0, 0.0, False, 1.0)
    found = movement(two, other)
    assert found is not None
    assert found.apart
    assert found.estimate == pytest.approx(0.1)


def test_chance_is_shared_by_all_rows() -> None:
    """Of many rows one is apart by chance: alone it counts, among forty it does not."""
    clear = Movement(0.1, 0.05, 0.15, True, 0.02)
    quiet = Movement(0.0, -0.1, 0.1, False, 0.9)
    assert beyond_chance([clear]) == [True]
    assert beyond_chance([None, clear, *[quiet] * 39]) == [False] * 41
    assert beyond_chance([Movement(0.1, 0.05, 0.15, False, 1e-9)]) == [False], "an interval reaches the other"


def test_equal_rows_are_rarely_called_moved() -> None:
    """Runs of 20 equal rows, 4 launches each: any of them errs in at most 5 % of runs, which Holm promises.
    With a fixed seed; 60 runs err 3 times on average at the most, and 8 times once in a hundred."""
    rng = np.random.default_rng(5)
    erring = 0
    for _ in range(60):
        pairs = [(np.exp(rng.normal(size=4) * 0.02), np.exp(rng.normal(size=4) * 0.02)) for _ in range(20)]
        moved = [movement(positive_location(list(a)), positive_location(list(b))) for a, b in pairs]  # type: ignore[arg-type]
        erring += any(beyond_chance(moved))
    assert erring < 8


# --------------------------------------------------------------------------------------------------- runs


def test_a_row_that_moved_is_named_and_the_others_are_not(
    old: tt.Results, fake: FakeEngine, run: Run
) -> None:
    fake.factor = slower("slow", 1.2)
    found = tt.compare(old, run(*WORDS))
    assert [(one.name, one.state) for one in found.rows] == [
        ("fast", "not known"),  # the reference has no ratio
        ("slow", "slower"),
        ("other", "not shown"),
    ]
    slow = found.rows[1]
    assert slow.ratio is not None
    assert slow.ratio.low < 0.2 < slow.ratio.high
    assert slow.reference == "fast"
    assert found.exit_code == 1
    text = " ".join(repr(found).split())
    assert "nothing that records know changed around them" in text
    assert "times of two moments are no verdict" in text
    command = found.settling["slow"].command
    assert command is not None
    assert command in text
    assert command.startswith("timetrial race backend=fast,slow network=mlp ")
    fake.factor = slower("slow", 0.8)
    better = tt.compare(old, run(*WORDS))
    assert (better.rows[1].state, better.exit_code) == ("faster", 0)


def test_the_machine_and_a_row_are_two_statements(old: tt.Results, fake: FakeEngine, run: Run) -> None:
    """Everything is a third slower: no ratio moved, every time did."""
    fake.factor = lambda plan: 1.33 * slower("", 1.0)(plan)
    found = tt.compare(old, run(*WORDS))
    assert [one.state for one in found.rows] == ["not known", "not shown", "not shown"]
    assert all(one.level_moved for one in found.rows)
    assert found.exit_code == 0
    assert "fast, the reference, moved by +3" in " ".join(repr(found).split())
    assert found.settling["fast"].command is None, "a row against itself would settle nothing"


def test_a_row_that_fails_now_is_worse(fake: FakeEngine, run: Run) -> None:
    fake.factor = slower("", 1.0)
    words = ("backend=fast,flaky", "threads=1")
    before = run(*words, "launches=1")  # it crashes in its second block
    found = tt.compare(before, run(*words, "launches=3"))
    assert (found.rows[1].state, found.rows[1].reason) == ("failed", "crash: once")
    assert found.exit_code == 1
    assert tt.compare(found.new, found.old).rows[1].state == "mended"
    assert "the other order" in repr(tt.compare(found.new, found.old)) or (
        found.records[0].created_at == found.records[1].created_at
    )


def test_without_intervals_nothing_is_known(fake: FakeEngine, run: Run) -> None:
    words = ("backend=fast,slow", "threads=1", "launches=1")
    before = run(*words)
    fake.factor = slower("slow", 3.0)
    found = tt.compare(before, run(*words))
    assert [one.state for one in found.rows] == ["not known", "not known"]
    assert found.exit_code == 3
    assert "launches=4" in str(found.rows[1].reason)
    single = tt.compare(before.sel(backend="fast"), found.new.sel(backend="fast"))  # type: ignore[union-attr]
    assert single.exit_code == 3


def test_rows_of_one_alone_are_named(old: tt.Results, run: Run) -> None:
    found = tt.compare(old, run("backend=fast,blind", "threads=1", "launches=3"))
    assert [one.name for one in found.rows] == ["fast"]
    assert (found.only_old, found.only_new) == (["slow", "other"], ["blind"])


def test_another_reference_is_replaced_by_the_older_one(old: tt.Results, fake: FakeEngine, run: Run) -> None:
    fake.factor = slower("slow", 1.2)
    found = tt.compare(old, run("backend=slow,fast,other", "threads=1", "launches=5"))
    assert {one.name: one.state for one in found.rows} == {
        "slow": "slower", "fast": "not known", "other": "not shown",
    }  # fmt: skip


def test_another_machine_has_no_times_to_compare(old: tt.Results, fake: FakeEngine, run: Run) -> None:
    fake.factor = slower("slow", 1.2)
    new = run(*WORDS)
    file = new.path / "experiment.json"
    document = json.loads(file.read_text())
    document["machine"] |= {"cpu": "Other CPU", "kernel": "7"}
    file.write_text(json.dumps(document))
    found = tt.compare(old.path, new.path)
    assert not found.same_machine
    assert found.changes["cpu"] == ("Test CPU", "Other CPU")
    assert all(one.level is None for one in found.rows)
    assert found.rows[1].state == "slower", "a ratio is said, with what it is worth"
    assert "two machines" in repr(found)
    settling = found.settling["slow"]
    assert settling.command is None
    assert "another machine" in settling.words


@pytest.mark.parametrize(
    ("words", "network", "named"),
    [
        (("backend=fast", "threads=1"), "lenet5", "network (mlp; lenet5)"),
        (("backend=blind", "threads=1"), "mlp", "backend"),
    ],
)
def test_no_row_in_common(
    old: tt.Results, run: Run, words: tuple[str, ...], network: str, named: str
) -> None:
    new = run(*words, "launches=1", network=network)
    with pytest.raises(InputError, match="no row in common") as error:
        tt.compare(old, new)
    assert named in str(error.value)


def test_other_work_is_not_compared(old: tt.Results, run: Run) -> None:
    """A network of the same name that has become another one."""
    new = run(*WORDS)
    file = new.path / "experiment.json"
    document = json.loads(file.read_text())
    for case in document["cases"]:
        case["parameters"] = 99
    file.write_text(json.dumps(document))
    found = tt.compare(old, tt.load(new.path))
    assert {one.state for one in found.rows} == {"other work"}
    assert "had 10 parameters" in str(found.rows[1].reason)
    assert found.exit_code == 3


def test_work_that_was_counted_otherwise_is_no_other_work(old: tt.Results, run: Run) -> None:
    """An earlier version left out what goes back through the states of a first recurrent layer."""
    new = run(*WORDS)

    def count(backward: int, forward: int = 100) -> tt.Results:
        file = new.path / "experiment.json"
        document = json.loads(file.read_text())
        products = {"forward": forward, "backward_data": 0, "backward_weights": backward}
        layer = {
            "name": "lstm",
            "kind": "lstm",
            "parameters": 10,
            "multiply_accumulates": products,
            "bytes": {},
        }
        for case in document["cases"]:
            case |= {"layers": [layer], "multiply_accumulates": forward + backward}
        file.write_text(json.dumps(document))
        return tt.load(new.path)

    before = Path(shutil.copytree(count(backward=100).path, new.path.parent / "before"))
    found = tt.compare(before, count(backward=150))
    assert "other work" not in {one.state for one in found.rows}
    found = tt.compare(before, count(backward=100, forward=101))
    assert {one.state for one in found.rows} == {"other work"}


def test_what_a_row_stands_on(old: tt.Results, fake: FakeEngine, run: Run) -> None:
    """A library of another version is named, and no race is promised that cannot be."""
    fake.factor = slower("slow", 1.2)
    new = run(*WORDS)
    for result, version in ((old, "1.0"), (new, "2.0")):
        for one in result.launches:
            if one.record.case == result.rows[1].case.id:
                library = {"path": "/lib/libx.so", "version": version, "sha256": version * 20}
                record = one.record.model_copy(update={"libraries": [library]})
                (one.folder / "record.json").write_text(record.model_dump_json(warnings=False))
    found = tt.compare(old.path, new.path)
    assert found.rows[1].changes == {"libx.so version": ("1.0", "2.0")}
    assert "libx.so version of slow: 1.0 -> 2.0" in repr(found)
    assert found.settling["slow"].command is None
    assert "no key of a race" in found.settling["slow"].words


def test_settings_in_force_that_changed_can_race(old: tt.Results, fake: FakeEngine, run: Run) -> None:
    fake.factor = slower("slow", 1.2)
    new = run(*WORDS)
    for one in new.launches:
        settings = [{**dict(setting), "effective": "2"} for setting in one.record.settings]
        record = one.record.model_copy(update={"settings": settings})
        (one.folder / "record.json").write_text(record.model_dump_json(warnings=False))
    found = tt.compare(old.path, new.path)
    assert found.rows[1].changes == {"setting threads": ("1", "2")}
    command = found.settling["slow"].command
    assert command is not None
    assert "threads=1,2" in command
    assert "backend=slow " in command


def test_source_that_changed_cannot_race_under_one_name(old: tt.Results, fake: FakeEngine, run: Run) -> None:
    fake.factor = slower("slow", 1.2)
    new = run(*WORDS)
    for result, digest in ((old, "a" * 64), (new, "b" * 64)):
        for one in result.launches:
            record = one.record.model_copy(update={"facts": {"callable.sha256": digest}})
            (one.folder / "record.json").write_text(record.model_dump_json())
    found = tt.compare(old.path, new.path)
    assert found.rows[1].changes == {"source": (f"sha256 {'a' * 12}", f"sha256 {'b' * 12}")}
    assert found.settling["slow"].command is None
    assert "--against COMMIT" in found.settling["slow"].words


def test_accuracy_is_compared_too(fake: FakeEngine, run: Run) -> None:
    """Neither the level of a machine nor a reference is in it."""
    words = (*WORDS, "epochs=2", "learning_seeds=3")

    def answers(right: int) -> Callable[[Any], Any]:
        def given(plan: Any) -> Any:
            true = np.zeros(360, np.int32)
            predicted = true.copy()
            predicted[right:] = 1
            return np.stack([predicted, true])

        return given

    fake.factor = slower("", 1.0)
    fake.answers = answers(350)
    before = run(*words)
    same = tt.compare(before, run(*words))
    assert (same.rows[1].accuracy, same.exit_code) == (None, 0)
    fake.answers = answers(250)
    worse = tt.compare(before, run(*words))
    assert {one.accuracy for one in worse.rows} == {"lower"}
    assert worse.exit_code == 1
    assert "its accuracy is lower" in repr(worse)
    assert tt.compare(worse.new, before).rows[1].accuracy == "higher"


def test_a_fact_that_an_older_record_lacks_is_no_change() -> None:
    assert changes_between({"a": "1"}, {"a": "1", "kernel": "6"}) == {}
    assert changes_between({"x.so sha256": "1"}, {"y.so sha256": "2"}) == {
        "x.so sha256": ("1", "-"), "y.so sha256": ("-", "2"),
    }  # fmt: skip
    assert changes_between({}, {"y.so sha256": "2"}) == {}
    older, newer = ({"x.so version": one, "x.so sha256": one * 2} for one in ("1", "2"))
    assert changes_between(older, newer) == {"x.so version": ("1", "2")}


@pytest.mark.parametrize("name", ["null-eigen"])
def test_records_of_the_first_schema(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(OLD / name, copy)
    found = tt.compare(OLD / name, copy)
    assert found.rows
    assert not found.changes
    assert found.exit_code in (0, 3)
    assert len(repr(found)) < 10_000


def test_a_profile_is_no_run() -> None:
    for pair in (
        (OLD / "profile-reference", OLD / "null-eigen"),
        (OLD / "null-eigen", OLD / "profile-reference"),
    ):
        with pytest.raises(InputError, match="is a profile, whose steps are slowed by looking"):
            tt.compare(*pair)


def test_what_is_unfinished_is_said_and_did_not_fail(old: tt.Results, run: Run) -> None:
    new = run(*WORDS)
    for one in new.launches:
        if one.record.case == new.rows[2].case.id:
            shutil.rmtree(one.folder)
    (new.path / "unfinished").touch()
    found = tt.compare(old, tt.load(new.path))
    assert found.rows[2].state == "not known"
    assert found.rows[2].reason == "not measured"
    assert "new: unfinished" in repr(found)


def test_damage_is_said_and_the_rest_compared(old: tt.Results, run: Run) -> None:
    new = run(*WORDS)
    victim = next(
        one
        for one in new.launches
        if one.record.case == new.rows[2].case.id and one.record.purpose == "speed"
    )
    (victim.folder / "stamps.bin").write_bytes(b"12345678")
    found = tt.compare(old, tt.load(new.path))
    assert found.rows[1].state == "not shown"
    assert found.rows[2].state == "not known", "what is damaged did not fail"
    assert "damaged" in str(found.rows[2].reason)


# -------------------------------------------------------------------------------------------------- races


def test_races(raced: Callable[..., Race], run: Run, fake: FakeEngine) -> None:
    before = raced("backend=fast,slow")
    fake.factor = lambda plan: 1.2 if plan.case.backend == "slow" else 1.0
    after = raced("backend=fast,slow")
    found = tt.compare(before, after)
    assert [(one.name, one.state) for one in found.rows] == [("fast", "not known"), ("slow", "slower")]
    assert found.settling["slow"].command == after.again
    assert found.exit_code == 1
    same = tt.compare(before, raced("backend=fast,other,slow").folder)
    assert same.only_new == ["other"]
    with pytest.raises(InputError, match="different metrics"):
        tt.compare(before, raced("backend=fast,slow", metric="peak_memory"))
    with pytest.raises(InputError, match="OLD is a race and NEW a run"):
        tt.compare(before, run(*WORDS))


# --------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize("as_json", [False, True])
def test_the_verb(old: tt.Results, fake: FakeEngine, run: Run, results_folder: Path, as_json: bool) -> None:
    fake.factor = slower("slow", 1.2)
    run(*WORDS)
    words = ["compare", old.path.name, "last", "--results", str(results_folder)]
    done = CliRunner().invoke(app, [*words, *(["--json"] if as_json else [])])
    assert done.exit_code == 1
    if as_json:
        document = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(word))
        assert document["rows"][1]["state"] == "slower"
        assert document["rows"][1]["race"]["command"].startswith("timetrial race ")
        assert document["exit_code"] == 1
    else:
        assert "slower" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["last", "last"], "are the same record"),
        (["last", "nowhere"], "There are no records at"),
    ],
)
def test_bad_input(old: tt.Results, results_folder: Path, words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["compare", *words, "--results", str(results_folder)])
    assert done.exit_code == 2
    assert message in done.stderr
    assert not done.stdout
