"""A run that was ended is gone on with: nothing is lost, nothing is measured twice, and it says so."""

from __future__ import annotations

import dataclasses
import errno
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.cases.case import Case
from timetrial.errors import InputError, Unavailable
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import Interrupted, profile_experiment, resume_experiment, run_experiment
from timetrial.races import Race, RaceInterrupted, resume_race, run_race
from timetrial.races.resuming import resume
from timetrial.records import sessions
from timetrial.results.results import Results

pytestmark = pytest.mark.attempt

WORDS = ("network=mlp", "backend=fast,slow,crashes,absent", "threads=1,2", "epochs=12", "launches=3")


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)


class _Clock:
    """Ends the run before its n-th launch, as Ctrl-C does."""

    def __init__(self, fake: FakeEngine):
        self._left = -1
        fake.before = self._tick

    def after(self, launches: int) -> None:
        self._left = launches

    def _tick(self, plan: Any) -> None:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1


@pytest.fixture
def clock(fake: FakeEngine) -> _Clock:
    return _Clock(fake)


def _run(fake: FakeEngine, results: Path, *words: str) -> Results:
    named = {word.partition("=")[0] for word in words}
    asked = [*(word for word in WORDS if word.partition("=")[0] not in named), *words]
    return run_experiment(load_words(asked), results, quiet=True, engine=fake.engine())


def _interrupted(fake: FakeEngine, clock: _Clock, results: Path, launches: int, *words: str) -> Path:
    clock.after(launches)
    with pytest.raises(Interrupted) as ended:
        _run(fake, results, *words)
    clock.after(-1)
    return ended.value.results.path


def _launches(fake: FakeEngine) -> Counter[tuple[str, str, int]]:
    return Counter((plan.purpose, plan.case.id, plan.block) for plan in fake.log)


def _table(results: Results) -> list[tuple[Any, ...]]:
    return [(row.outcome, row.step_time_ns, row.ratio, row.accuracy, row.ok) for row in results.rows]


@pytest.mark.parametrize("words", [("isolated=true",), ()])
def test_wherever_it_is_ended_the_rest_is_measured(
    words: tuple[str, ...], fake: FakeEngine, clock: _Clock, tmp_path: Path
) -> None:
    whole = _table(_run(fake, tmp_path / "whole", *words))
    once = _launches(fake)
    seats = 6 if not words else 1
    for launches in range(sum(once.values())):
        fake.log.clear()
        folder = _interrupted(fake, clock, tmp_path / str(launches), launches, *words)
        resumed = resume_experiment(folder, quiet=True, engine=fake.engine())
        assert set(_launches(fake)) == set(once)
        # A heat that lacks a seat is ridden once more, by all; nothing else is repeated.
        again = _launches(fake) - once
        assert sum(again.values()) < seats
        assert all(purpose == "speed" for purpose, _, _ in again)
        if not again:
            assert _table(resumed) == whole
        assert sessions.state(folder) == "whole"


def test_an_end_after_an_end(fake: FakeEngine, clock: _Clock, tmp_path: Path) -> None:
    folder = _interrupted(fake, clock, tmp_path, 1, "isolated=true")
    for _ in range(200):
        clock.after(1)
        try:
            found = resume_experiment(folder, quiet=True, engine=fake.engine())
            break
        except Interrupted:
            continue
    assert max(_launches(fake).values()) == 1
    notes = sorted((folder / "resumed").iterdir())
    assert len(notes) > 10
    notes[0].write_text("{")
    said = [words for words in found.warnings if words.startswith("resumed")]
    assert len(said) == len(notes)
    assert "is damaged" in said[0]


def test_a_reference_that_rode_already_rides_again_beside_those_that_did_not(
    fake: FakeEngine, clock: _Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Heats of two: there is room for that.
    monkeypatch.setattr("timetrial.experiment.phases.available_bytes", lambda: 2)
    monkeypatch.setattr("timetrial.experiment.phases.needed_bytes", lambda folder, one: 1)
    words = ("backend=fast,slow,other", "threads=1", "reference=fast", "learning_seeds=1")
    folder = _interrupted(fake, clock, tmp_path, 3 + 2, *words)  # proofs, one heat of two
    resume_experiment(folder, quiet=True, engine=fake.engine())
    by_block = Counter((plan.case.backend, plan.block) for plan in fake.log if plan.purpose == "speed")
    assert by_block == {
        (backend, block): 2 if backend == "fast" else 1
        for backend in ("fast", "slow", "other")
        for block in range(3)
    }


def test_the_table_says_what_is_missing_and_how_it_is_had(
    fake: FakeEngine, clock: _Clock, tmp_path: Path
) -> None:
    folder = _interrupted(fake, clock, tmp_path, 5)
    assert f"unfinished: `timetrial run --resume {folder}` does the rest" in Results(folder).warnings
    with sessions.session(folder):
        assert Results(folder).warnings[0] == "still running: this is what has finished so far"
        with pytest.raises(InputError, match="is being measured by another process"):
            resume_experiment(folder, quiet=True, engine=fake.engine())
    folder_2 = _interrupted(fake, clock, tmp_path, 5)
    after = resume_experiment(folder_2, quiet=True, engine=fake.engine())
    assert any(words.startswith("resumed 20") and "after 5 launches" in words for words in after.warnings)
    assert not any("unfinished" in words for words in after.warnings)


def test_a_run_that_finds_itself_unfinished_says_so_and_cleans_up(
    fake: FakeEngine, clock: _Clock, tmp_path: Path
) -> None:
    folder = _interrupted(fake, clock, tmp_path, 8)
    killed = folder / "launches" / "099"  # as SIGKILL leaves a launch
    for own in ("home", "tmp"):
        (killed / own).mkdir(parents=True)
        (killed / own / "file").write_text("much")
    (killed / "stamps.bin").write_bytes(b"half")
    kept = sorted(folder.rglob("record.json"))
    again = _run(fake, tmp_path)
    assert [words for words in again.warnings if f"{folder} is the same, begun and not finished" in words]
    assert not killed.exists()
    assert sorted(folder.rglob("record.json")) == kept
    other = _run(fake, tmp_path, "seed=7")
    assert not [words for words in other.warnings if "not finished" in words]


def test_a_file_system_without_locks(
    fake: FakeEngine, clock: _Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can tell whether somebody measures: nothing is cleaned, and the user's word is taken."""

    def flock(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("timetrial.records.sessions.fcntl.flock", flock)
    folder = _interrupted(fake, clock, tmp_path, 8)
    assert sessions.unfinished(tmp_path) == []
    assert any(words.startswith("unfinished: ") for words in Results(folder).warnings)
    resume_experiment(folder, quiet=True, engine=fake.engine())
    assert sessions.state(folder) == "whole"


@pytest.fixture
def left(fake: FakeEngine, clock: _Clock, tmp_path: Path) -> Path:
    return _interrupted(fake, clock, tmp_path, 8)


def _edit(folder: Path, **fields: Any) -> None:
    file = folder / "experiment.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"timetrial_version": "0.0.9"}, "was begun by timetrial 0.0.9, this is"),
        ({"machine": {"cpu": "Other", "usable_cpus": 64, "cpus": 2}}, "cpu was Other, is Test CPU"),
        ({"profiles": 1}, "is a profile, which is made anew"),
    ],
)
def test_what_cannot_be_compared_is_not_gone_on_with(
    left: Path, fake: FakeEngine, fields: dict[str, Any], words: str
) -> None:
    before = sorted(left.rglob("*"))
    _edit(left, **fields)
    fake.log.clear()
    with pytest.raises(InputError, match=words):
        resume_experiment(left, quiet=True, engine=fake.engine())
    assert not fake.log
    assert sessions.state(left) == "unfinished"
    assert sorted(left.rglob("*")) == before


def test_other_cases_now(left: Path, fake: FakeEngine) -> None:
    cases = json.loads((left / "experiment.json").read_text())["cases"]
    _edit(left, cases=cases[1:])
    with pytest.raises(InputError, match=r"has 7 cases; the same words now say 8, 7 of them the same"):
        resume_experiment(left, quiet=True, engine=fake.engine())


def test_what_is_gone_by_now(left: Path, fake: FakeEngine) -> None:
    """A case that could be had when it began, and one that could not."""
    usual = fake.resolve

    def resolve(case: Case) -> Any:
        if case.backend == "slow":
            raise Unavailable("slow was removed")
        return usual(case)

    gone = dataclasses.replace(fake.engine(), resolve=resolve)
    with pytest.raises(InputError, match="begun with slow, which is unavailable now: slow was removed"):
        resume_experiment(left, quiet=True, engine=gone)

    def all_there(case: Case) -> Any:
        return SimpleNamespace(kind="native", fingerprint="0", flags=())

    found = resume_experiment(left, quiet=True, engine=dataclasses.replace(fake.engine(), resolve=all_there))
    assert [row.outcome for row in found.rows if row.case.backend == "absent"] == ["unavailable"] * 2
    assert not [plan for plan in fake.log if plan.case.backend == "absent"]


def test_a_damaged_record_is_named(left: Path, fake: FakeEngine) -> None:
    record = sorted(left.rglob("record.json"))[0]
    record.write_text("{")
    with pytest.raises(InputError, match=f"is damaged.*Remove '{record.parent}' to have this launch made"):
        resume_experiment(left, quiet=True, engine=fake.engine())


def test_what_changed_on_the_machine_is_said(left: Path, fake: FakeEngine) -> None:
    machine = json.loads((left / "experiment.json").read_text())["machine"]
    _edit(left, machine={**machine, "kernel": "5.4", "load_1min": 3.0})
    found = resume_experiment(left, quiet=True, engine=fake.engine())
    assert any(words.endswith("meanwhile kernel was 5.4, is None") for words in found.warnings)


def test_nothing_is_missing(fake: FakeEngine, tmp_path: Path) -> None:
    done = _run(fake, tmp_path)
    with pytest.raises(InputError, match="is whole: nothing is missing"):
        resume_experiment(done.path, quiet=True, engine=fake.engine())


def test_a_profile_that_was_ended_says_unfinished(fake: FakeEngine, clock: _Clock, tmp_path: Path) -> None:
    clock.after(1)
    with pytest.raises(Interrupted) as ended:
        profile_experiment(
            load_words([*WORDS[:1], "backend=fast"]), tmp_path, quiet=True, engine=fake.engine()
        )
    assert any(
        words.startswith("unfinished: `timetrial profile") for words in ended.value.results.profile.warnings
    )


# ------------------------------------------------------------------------------------------------ races


@pytest.fixture
def slower(fake: FakeEngine) -> None:
    """The second of two equals is slower, in every pair: a verdict that is raced twice."""
    fake.factor = lambda plan: 1.05 if plan.case.repeat == 2 else 1.0


def _raced(fake: FakeEngine, results: Path) -> Race:
    return run_race(
        load_words(["network=mlp", "backend=fast,fast"]), results, quiet=True, engine=fake.engine()
    )


@pytest.mark.usefixtures("slower")
def test_wherever_a_race_is_ended_the_rest_is_raced(fake: FakeEngine, clock: _Clock, tmp_path: Path) -> None:
    whole = _raced(fake, tmp_path / "whole")
    launches = len(fake.log)
    for ended_after in range(1, launches):
        fake.log.clear()
        clock.after(ended_after)
        with pytest.raises(RaceInterrupted) as ended:
            _raced(fake, tmp_path / str(ended_after))
        assert "--resume" in repr(ended.value.race)
        clock.after(-1)
        found = resume_race(ended.value.race.folder, quiet=True, engine=fake.engine())
        assert (found.verdict, found.confirmed) == (whole.verdict, whole.confirmed) == ("worse", True)
        # Of a pair that lacks a side, both sides are launched anew; nothing else is.
        assert len(fake.log) <= 1 + 2 * len(found.pairs) + 1
        assert "resumed 20" in repr(found)
        with pytest.raises(InputError, match="is whole"):
            resume_race(found.folder, quiet=True, engine=fake.engine())


def test_a_race_that_was_ended_before_its_first_pair(fake: FakeEngine, clock: _Clock, tmp_path: Path) -> None:
    clock.after(0)
    with pytest.raises(KeyboardInterrupt):
        _raced(fake, tmp_path)
    [folder] = tmp_path.glob("????????????")
    with pytest.raises(InputError, match="is not a record"):
        resume(folder)
