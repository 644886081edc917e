"""Launches side by side: proofs, of which one is judged while the next one runs, and learning."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from launching import make_plan, small_network, words

from timetrial.errors import MeasurementError
from timetrial.launch import launch_together
from timetrial.launch.gate import Gate
from timetrial.processes.contender_process import ContenderProcess
from timetrial.proof import judge


class Alive:
    """How many contenders are alive, and were at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = self.most = self.all = 0
        self.second = threading.Event()  # has begun
        self._lock = threading.Lock()
        enter, leave = ContenderProcess.__enter__, ContenderProcess.__exit__
        monkeypatch.setattr(ContenderProcess, "__enter__", lambda process: self._begins(enter(process)))
        monkeypatch.setattr(
            ContenderProcess, "__exit__", lambda process, *why: self._ends(leave(process, *why))
        )

    def _begins(self, process: ContenderProcess) -> ContenderProcess:
        with self._lock:
            self.now += 1
            self.all += 1
            self.most = max(self.most, self.now)
        if self.all == 2:
            self.second.set()
        return process

    def _ends(self, answer: Any) -> Any:
        with self._lock:
            self.now -= 1
        return answer


def plans(folder: Path, count: int, purpose: Any) -> list[Any]:
    network = small_network(folder)
    return [
        make_plan(folder / str(number), "eigen", network=network, purpose=purpose, settings={"threads": "1"})
        for number in range(count)
    ]


def test_one_is_alive_while_another_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = Alive(monkeypatch)
    judge_proof = Gate.judge_proof

    def when_the_next_runs(gate: Gate, *arguments: Any) -> Any:
        assert alive.second.wait(60), "nobody runs while one is judged"
        return judge_proof(gate, *arguments)

    monkeypatch.setattr(Gate, "judge_proof", when_the_next_runs)
    told: list[str] = []
    records = launch_together(plans(tmp_path, 3, "proof"), 1, lambda record: told.append(record.id))
    assert [record.outcome for record in records] == ["ok"] * 3, [words(record) for record in records]
    assert sorted(told) == sorted(record.id for record in records)
    assert alive.most == 1
    assert alive.all == 6  # a proof is two launches
    assert judge._made.cache_info().currsize == 0  # their memory is there for heats


def test_proofs_side_by_side_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = Alive(monkeypatch)
    records = launch_together(plans(tmp_path, 3, "proof"), 2, lambda record: None)
    assert [record.outcome for record in records] == ["ok"] * 3, [words(record) for record in records]
    assert alive.most == 2
    assert {record.at_once for record in records} == {2}


def test_several_learn_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = Alive(monkeypatch)
    records = launch_together(plans(tmp_path, 4, "learning"), 2, lambda record: None)
    assert [record.outcome for record in records] == ["ok"] * 4, [words(record) for record in records]
    assert alive.most == 2


def test_what_cannot_be_measured_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = Alive(monkeypatch)
    several = plans(tmp_path, 4, "proof")
    several[0].folder.mkdir()
    (several[0].folder / "record.json").write_text("{}")
    with pytest.raises(MeasurementError, match="has a record already"):
        launch_together(several, 1, lambda record: None)
    assert alive.now == 0
    assert alive.all < 6
    assert not (several[3].folder / "record.json").exists()
