"""The plug-in's engine over scripted launches: which launches each assertion costs, and what they tell it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine

from timetrial.errors import InputError, Unavailable
from timetrial.in_process.settings import SettingsWarning
from timetrial.races import Side
from timetrial.records.model import LaunchRecord, Parity
from timetrial.records.store import to_bytes
from timetrial.statistics.verdict import Rule
from timetrial.testing.engine import RealEngine


@pytest.fixture(autouse=True)
def _scripted(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timetrial.experiment.runner.real_engine", fake.engine)
    monkeypatch.setattr("timetrial.races.racing.real_engine", fake.engine)


@pytest.fixture
def engine(tmp_path: Path) -> RealEngine:
    return RealEngine(tmp_path / "records")


def side(backend: str, **keys: object) -> Side:
    return Side({"backend": backend, "network": "mlp", "threads": 1, **keys})


def purposes(fake: FakeEngine) -> list[str]:
    return [plan.purpose for plan in fake.log]


def test_once_proves_each_side_and_times_nothing(engine: RealEngine, fake: FakeEngine) -> None:
    ran = engine.once([side("fast"), side("slow")], "step_time", 7)
    assert (ran.outcome, ran.again) == ("ok", "")
    assert [(plan.purpose, plan.case.backend, plan.seed) for plan in fake.log] == [
        ("proof", "fast", 7),
        ("proof", "slow", 7),
    ]
    assert Path(ran.folder).parent == engine.results


def test_once_proves_a_side_against_itself_once(engine: RealEngine, fake: FakeEngine) -> None:
    engine.once([side("fast"), side("fast")], "step_time", 1)
    assert purposes(fake) == ["proof"]


def test_what_has_no_proof_takes_its_steps_once(
    engine: RealEngine, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    proven = fake.launch

    def launch(plan: object) -> LaunchRecord:
        record = proven(plan)
        unproven = Parity(status="unproven", reason="it offers no tensors")
        return record.model_copy(update={"parity": unproven}) if record.purpose == "proof" else record

    monkeypatch.setattr(fake, "launch", launch)
    assert engine.once([side("fast"), side("crashes")], "step_time", 1).outcome == "crash"
    assert [(plan.purpose, plan.case.backend) for plan in fake.log if plan.purpose == "speed"] in (
        [("speed", "fast"), ("speed", "crashes")],
        [("speed", "crashes"), ("speed", "fast")],
    )


def test_a_proof_that_fails_is_told_with_the_sides_name(engine: RealEngine) -> None:
    ran = engine.once([side("fast"), side("wrong")], "step_time", 1)
    assert (ran.name, ran.outcome) == ("wrong", "wrong")
    assert ran.reason is not None
    assert ran.reason.startswith("gradient conv1.weight")


def test_learning_launches_one_per_seed(engine: RealEngine, fake: FakeEngine) -> None:
    ran = engine.learn(side("fast"), 5, epochs=12, seeds=2)
    assert purposes(fake) == ["proof", "learning", "learning"]
    assert ran.accuracies == pytest.approx([0.975, 0.976])  # the script's: 0.97 and a thousandth per seed
    assert ran.again.startswith("timetrial run backend=fast network=mlp threads=1 epochs=12")


def test_memory_is_the_most_of_its_launches(engine: RealEngine, fake: FakeEngine) -> None:
    ran = engine.occupy(side("fast"), 1, launches=2)
    assert purposes(fake)[:3] == ["proof", "speed", "speed"]
    assert ran.peak_bytes == 50 * 2**20
    assert ran.growth is not None
    assert ran.growth.words == []


def test_a_race_is_a_race_of_timetrial(engine: RealEngine) -> None:
    race = engine.race([side("fast"), side("slow")], "step_time", Rule(min_effect=0.1), 3, 60.0)
    assert (race.verdict, race.confirmed, race.rule.min_effect) == ("worse", True, 0.1)
    assert race.record.experiment.seed == 3
    assert race.record.experiment.spec["measure"]["budget"] == 60
    place = engine.place(str(race.folder), race.duels[0].case)
    assert (place["record"], place["proven"]) == (race.folder.name, True)
    assert place["environment"]["setting threads"] == "1"
    assert race.folder.parent == engine.results


def test_what_this_machine_lacks_is_said_as_such(engine: RealEngine) -> None:
    for ask in (
        lambda: engine.once([side("fast"), side("absent")], "step_time", 1),
        lambda: engine.learn(side("absent"), 1, epochs=1, seeds=1),
        lambda: engine.race([side("fast"), side("absent")], "step_time", Rule(), 1, 60.0),
        lambda: engine.race([side("absent"), side("fast")], "step_time", Rule(), 1, 60.0),
    ):
        with pytest.raises(Unavailable, match=r"^absent: absent needs the module absent"):
            ask()


def test_what_cannot_be_raced_is_refused_before_anything_starts(engine: RealEngine, fake: FakeEngine) -> None:
    with pytest.raises(InputError, match="differ in network"):
        engine.once([side("fast"), side("fast", network="lenet5")], "step_time", 1)
    with pytest.raises(InputError, match="throughput"):
        engine.once([side("fast"), side("fast", batch_size=32)], "step_time", 1)
    with pytest.raises(InputError, match="2 cases; a side is one"):
        engine.learn(side("fast", batch_size=[32, 64]), 1, epochs=1, seeds=1)
    assert fake.log == []


@pytest.mark.parametrize("own", [True, False])
def test_sessions_take_turns_and_only_the_own_folder_is_hidden_from_git(
    fake: FakeEngine, tmp_path: Path, own: bool
) -> None:
    engine = RealEngine(tmp_path / "records", own)

    def someone_else_wants_a_turn(plan: object) -> None:
        with (engine.results / ".turn").open("w") as turn, pytest.raises(BlockingIOError):
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)

    fake.before = someone_else_wants_a_turn
    engine.once([side("fast"), side("slow")], "step_time", 1)
    assert len(fake.log) == 2
    with (engine.results / ".turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (engine.results / ".gitignore").exists() is own


def test_a_race_lacks_what_its_launch_did_not_find(
    engine: RealEngine, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = fake.launch

    def launch(plan: Any) -> LaunchRecord:
        lacking = {"outcome": "unavailable", "reason": "No module named 'torch'"}
        record = plain(plan).model_copy(update=lacking)
        (plan.folder / "record.json").write_bytes(to_bytes(record))
        return record

    monkeypatch.setattr(fake, "launch", launch)
    with pytest.raises(Unavailable, match="fast: No module named 'torch'"):
        engine.race([side("fast"), side("slow")], "step_time", Rule(), 1, 60.0)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, fake: FakeEngine) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"Records cannot be kept in '.*file'.*--bench-results=DIR"):
        RealEngine(tmp_path / "file").once([side("fast")] * 2, "step_time", 1)


def test_a_race_warns_of_what_holds_in_pytest_and_not_in_its_sides(
    engine: RealEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    sides = [Side({"callable": "mine:make"}), Side({"callable": "mine:other"})]
    with pytest.warns(SettingsWarning, match="OMP_NUM_THREADS=77 is set here, and not in contenders"):
        engine.race(sides, "step_time", Rule(), 1, 60.0)
