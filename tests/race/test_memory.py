"""Sides that do not fit in memory together ride in alternation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

from timetrial.experiment import memory
from timetrial.experiment.engine import real_engine
from timetrial.experiment.experiment import load_words
from timetrial.experiment.validate import validate
from timetrial.races import Race, run_race

MEMINFO = "MemTotal:       8000000 kB\nMemAvailable:   4000000 kB\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "meminfo").write_text(MEMINFO)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 4_096_000_000),
        ({"memory.max": "max\n", "memory.current": "5\n"}, 4_096_000_000),
        ({"memory.max": "1000000\n", "memory.current": "400000\n"}, 600_000),
        ({"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "1\n"}, 999),
        (
            {
                "memory.max": "1000000\n",
                "memory.current": "900000\n",
                "memory.stat": "anon 100000\nactive_file 200000\ninactive_file 600000\n",
            },
            700_000,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "1000\n",
                "memory/memory.usage_in_bytes": "900\n",
                "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
            },
            600,
        ),
        ({"memory.max": "9223372036854771712\n", "memory.current": "5\n"}, 4_096_000_000),
    ],
)
def test_what_is_free(tmp_path: Path, proc: Path, files: dict[str, str], free: int) -> None:
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert memory.available_bytes(proc, tmp_path / "cgroup") == free


class Crowded(FakeEngine):
    """Contenders that hold 50 MB each; counts who was alive together."""

    def launch(self, plan: Any) -> Any:
        record = super().launch(plan)
        held = record.memory.model_copy(update={"lifetime_peak": 50 * 2**20})
        record = record.model_copy(update={"memory": held})
        (plan.folder / "record.json").write_text(record.model_dump_json(), encoding="utf-8")
        return record

    def heat(self, plans: Any, course: Any) -> Any:
        self.alive = [*getattr(self, "alive", []), len(plans)]
        return super().heat(plans, course)


def crowded(
    free_mb: int, folder: Path, monkeypatch: pytest.MonkeyPatch, **keys: Any
) -> tuple[Race, list[int]]:
    monkeypatch.setattr(memory, "available_bytes", lambda: free_mb * 2**20)
    engine = Crowded()
    experiment = load_words(["network=mlp", "backend=slow,fast"], load_network=fakes.network)
    found = run_race(experiment, folder, quiet=True, engine=engine.engine(), **keys)
    return found, engine.alive  # type: ignore[attr-defined]


def test_with_room_they_are_alive_together(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, together = crowded(126, results_folder, monkeypatch)
    assert set(together) == {2}
    assert not found.record.isolated


def test_without_room_each_is_alone_and_the_race_says_so(
    results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, together = crowded(124, results_folder, monkeypatch)
    assert set(together) == {1}
    assert found.verdict == "better"
    text = " ".join(repr(found).split())
    assert (
        "whole launches in alternation: together the sides need about 125 MB (slow 50 MB, fast 50 MB)" in text
    )
    assert "124 MB are free" in text


def test_alone_if_asked(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, together = crowded(10_000, results_folder, monkeypatch, isolated=True)
    assert set(together) == {1}
    assert "whole launches in alternation, as asked" in repr(found)


def test_so_many_side_by_side_at_most_as_processors_and_memory_have_room_for(
    results_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(4)))
    for gigabytes, proofs, at_once in ((64, 8, 4), (64, 3, 3), (9, 8, 2), (3, 8, 1), (0, 8, 1)):
        monkeypatch.setattr(memory, "available_bytes", lambda free=gigabytes: free * 2**30)
        assert memory.side_by_side_at_most(proofs) == at_once
    monkeypatch.setattr(memory, "available_bytes", lambda: 64 * 2**30)
    assert memory.side_by_side_at_most(8, largest=10 * 2**30) == 2
    assert memory.side_by_side_at_most(8, judged=54 * 2**30) == 2
    assert memory.side_by_side_at_most(8, judged=100 * 2**30) == 1
    # A race proves its sides that way as well.
    monkeypatch.setattr(memory, "available_bytes", lambda: 64 * 2**30)
    fake = FakeEngine()
    experiment = load_words(["network=mlp", "backend=slow,fast"], load_network=fakes.network)
    run_race(experiment, results_folder, quiet=True, engine=fake.engine())
    assert [plan.at_once for plan in fake.log if plan.purpose == "proof"] == [2, 2]
    assert {plan.at_once for plan in fake.log if plan.purpose == "race"} == {1}


def test_judging_large_networks_leaves_less_room_for_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """ResNet-50 on four images of 224x224: 6 GB were seen."""
    cases = load_words(["network=resnet50", "backend=eigen,reference"]).cases
    ready = validate(cases, real_engine())
    assert memory.judged_bytes(ready[0]) == pytest.approx(7e9, rel=0.15)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(4)))
    for free, at_once in ((24, 2), (12, 1), (8, 1)):
        monkeypatch.setattr(memory, "available_bytes", lambda free=free: free * 2**30)
        assert memory.proofs_at_once(ready) == at_once
    small = validate(load_words(["network=lenet5", "backend=eigen"]).cases, real_engine())
    assert memory.judged_bytes(small[0]) < 200e6
