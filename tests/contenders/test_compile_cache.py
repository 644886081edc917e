"""What a framework compiles is kept from the proof on, and every record says whether its launch had it."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launching import SHORT, make_plan, small_network, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.contenders.compile_cache import compiled_nothing, finds_compiled, prune
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.launch.job import make_job
from timetrial.records.model import LaunchRecord

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted" / "adapter.py"

# The NumPy framework of the tests; it counts its launches in the folder that it gets for its compile caches.
ADAPTER = """
import importlib.util
import os

spec = importlib.util.spec_from_file_location("planted_base", {path!r})
base = importlib.util.module_from_spec(spec)
spec.loader.exec_module(base)


class Adapter(base.Adapter):
    def load(self, settings):
        super().load(settings)
        self.file = os.path.join(os.environ["ITS_CACHE"], "launches")
        before = len(open(self.file).read()) if os.path.exists(self.file) else 0
        self.known = {{"launches before": str(before)}}
        open(self.file, "a").write("x")

    def facts(self):
        return self.known
"""

ENVIRONMENT = """
[[versions]]
version = "1"
modules = {numpy = "numpy"}
serves = ">=1.0"
environment = { ITS_CACHE = "{cache}" }

[versions.settings."planted.defect"]
"""


@pytest.fixture
def framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "framework"
    folder.mkdir()
    (folder / "adapter.py").write_text(ADAPTER.format(path=str(PLANTED)))
    (folder / "environment.toml").write_text(ENVIRONMENT)
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    return folder


def launch(framework: Path, name: str, purpose: str = "speed", **more: Any) -> tuple[LaunchRecord, int]:
    """The record, and how many launches had used its folder before."""
    network = small_network(framework.parent)
    plan = make_plan(framework.parent / name, str(framework), network=network, purpose=purpose, **more)
    record = run_launch(plan)
    return record, int(record.facts.get("launches before", -1))


def state(record: LaunchRecord) -> str:
    assert record.compile_cache is not None, words(record)
    return record.compile_cache.state


def test_cold_in_the_proof_and_then_warm(framework: Path) -> None:
    alone, before = launch(framework, "alone")
    assert (state(alone), before) == ("cold", 0)  # nothing was kept yet
    proof, before = launch(framework, "proof", "proof")
    assert (proof.outcome, state(proof), before) == ("ok", "cold", 0), words(proof)
    assert proof.first_call_ns is not None
    for number, purpose in enumerate(("speed", "learning"), start=2):  # the proof is two launches
        timed, before = launch(framework, f"timed{number}", purpose, measure=replace(SHORT, epochs=1))
        assert (state(timed), before) == ("warm", number)
        assert timed.first_call_ns is None
        assert timed.compile_cache is not None
        assert proof.compile_cache is not None
        assert timed.compile_cache.path == proof.compile_cache.path
    again, before = launch(framework, "again", "proof")
    assert (state(again), before) == ("cold", 0)


def test_other_work_has_a_cache_of_its_own(framework: Path) -> None:
    launch(framework, "proof", "proof")
    other, _ = launch(framework, "task", task="gradient")
    assert state(other) == "cold"
    other, _ = launch(framework, "batch", batch_size=8)
    assert state(other) == "cold"
    seed, _ = launch(framework, "seed", seed=2)
    assert state(seed) == "warm"  # other values of the same shapes


def test_whether_a_proof_with_other_threads_leaves_what_is_needed(framework: Path) -> None:
    proof, _ = launch(framework, "proof", "proof", settings={"threads": "1"})
    assert not compiled_nothing(proof)

    def finds(settings: dict[str, str], *, compiles_nothing: bool = False) -> bool:
        network = small_network(framework.parent)
        plan = make_plan(framework.parent / "plan", str(framework), network=network, settings=settings)
        contender = resolve(plan.case)
        return finds_compiled(
            plan.case, make_job(plan, contender), contender, compiles_nothing=compiles_nothing
        )

    assert finds({"threads": "1"})
    assert finds({"threads": "1", "nice": "1"})
    assert not finds({"threads": "2"}), "its own folder is empty"
    assert finds({"threads": "2", "cache": "cold"}), "it wants an empty one"
    assert finds({"threads": "2"}, compiles_nothing=True), "so would its own proof leave it"
    assert finds({"threads": "2"}), "which was noted"
    timed, before = launch(framework, "timed", settings={"threads": "2"})
    assert (state(timed), before) == ("warm", 0)


@pytest.mark.effect("cache")
def test_cold_as_a_setting(framework: Path) -> None:
    launch(framework, "proof", "proof")
    for name in ("one", "two"):
        record, before = launch(framework, name, settings={"cache": "cold"})
        assert (state(record), before) == ("cold", 0)
        (setting,) = (one for one in record.settings if one.name == "cache")
        assert (setting.effective, setting.status) == ("cold", "applied")


def test_warm_that_is_not_there_is_said(framework: Path) -> None:
    record, _ = launch(framework, "one", settings={"cache": "warm"})
    (setting,) = (one for one in record.settings if one.name == "cache")
    assert (setting.asked, setting.effective, setting.status) == ("warm", "cold", "adjusted")


def test_a_proof_that_fails_to_run_leaves_nothing(framework: Path) -> None:
    launch(framework, "proof", "proof")
    text = (framework / "adapter.py").read_text()
    (framework / "adapter.py").write_text(
        text + "\n    def build(self, *_):\n        raise KeyError('planted')\n"
    )
    broken, _ = launch(framework, "broken", "proof")
    assert broken.outcome == "crash"
    timed, _ = launch(framework, "timed")
    assert state(timed) == "cold"


def test_an_entry_that_somebody_makes_is_left_alone_and_one_that_is_used_is_shared(framework: Path) -> None:
    proof, _ = launch(framework, "proof", "proof")
    assert proof.compile_cache is not None
    assert proof.compile_cache.path is not None
    lock = os.open(Path(proof.compile_cache.path).parent / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record, before = launch(framework, "meanwhile")
        assert (state(record), before) == ("cold", 0)
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a rival of the same heat holds it
        record, _ = launch(framework, "beside")
        assert state(record) == "warm"
    finally:
        os.close(lock)


def test_who_compiles_nothing_has_none(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "null"))
    assert state(record) == "none"
    case = Case("eigen", workload("mlp"), settings={"cache": "cold"})
    with pytest.raises(InputError, match="has no setting 'cache'"):
        validate_settings(case, resolve(case))


def test_bad_words(framework: Path) -> None:
    case = Case(str(framework), workload("mlp"), settings={"cache": "hot"})
    with pytest.raises(InputError, match="cache='hot': expected warm or cold"):
        validate_settings(case, resolve(case))


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"entry{number}" / "files").mkdir(parents=True)
        (tmp_path / f"entry{number}" / "files" / "compiled").write_bytes(b"x" * 1000)
        marker = tmp_path / f"entry{number}" / "entry.json"
        marker.write_text("{}")
        os.utime(marker, (number, number))
    prune(tmp_path, keep=tmp_path / "entry0", limit_bytes=2500)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entry0", "entry3"]
