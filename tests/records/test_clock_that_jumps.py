"""The clock on the wall may be set at any time: nothing that decides reads it. What does is for people."""

from __future__ import annotations

import itertools
import os
import re
import time
from pathlib import Path

import fakes
import pytest
from fakes import FakeEngine
from launching import make_plan, words

import timetrial
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.launch import run_launch
from timetrial.races import run_race
from timetrial.records import store
from timetrial.workloads.cache import cached, making

PACKAGE = Path(timetrial.__file__).parent
DAY_NS = 86400 * 10**9
READS = re.compile(
    r"\btime\.time(?:_ns)?\b|\bdatetime\.(?:now|utcnow|today)\b|strftime\(|localtime\(|gmtime\("
)
# Who reads it, and what for.
READERS = {
    "datasets/install.py": "when a data set was brought",
    "environments/making.py": "when an environment was made",
    "experiment/describe.py": "when a run was begun, for people",
    "launch/found.py": "when a launch was begun, for people",
    "processes/lock.py": "since when somebody measures, for people",
    "records/sessions.py": "when a run was resumed, for people",
    "selfcheck/run.py": "a folder's name",
    "workloads/cache.py": "the age of a folder that nobody holds",
}


def readers(sources: dict[str, str]) -> set[str]:
    return {name for name, text in sources.items() if READS.search(text)}


def test_who_reads_the_clock_on_the_wall() -> None:
    own = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert readers(own) == set(READERS)


@pytest.mark.parametrize(
    "text",
    ["time.time() > deadline", "datetime.datetime.now(zone)", "now = time.time_ns", "time.strftime('')"],
)
def test_the_check_finds_readers(text: str) -> None:
    assert readers({"file": text}) == {"file"}
    assert readers({"file": "time.monotonic(), time.perf_counter(), datetime.fromisoformat(at)"}) == set()


@pytest.mark.attempt
def test_a_launch_while_the_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, jumps = time.time, itertools.cycle([0.0, 1e6, -1e6, 4e8, -9e8])
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * time.time()))
    record = run_launch(make_plan(tmp_path / "launch", "null"))
    assert record.outcome == "ok", words(record)
    borders = [phase.ns for phase in record.phases]
    assert borders == sorted(borders)


@pytest.mark.attempt
def test_the_last_record_is_the_one_that_was_begun_last(fake: FakeEngine, results_folder: Path) -> None:
    """Though the clock was set back by a day since the others."""
    words = ["network=mlp", "backend=fast,fast"]
    first = run_experiment(
        load_words(words, load_network=fakes.network), results_folder, quiet=True, engine=fake.engine()
    )
    ahead = first.path / store.EXPERIMENT_FILE
    os.utime(ahead, ns=(0, ahead.stat().st_mtime_ns + DAY_NS))
    race = run_race(
        load_words(words, load_network=fakes.network), results_folder, quiet=True, engine=fake.engine()
    )
    assert store.find("last", results_folder) == race.folder
    second = run_experiment(
        load_words(words, load_network=fakes.network), results_folder, quiet=True, engine=fake.engine()
    )
    assert store.find("last", results_folder) == second.path
    assert store.newest_first(results_folder) == [second.path, race.folder, first.path]


@pytest.mark.attempt
def test_what_somebody_makes_is_not_swept_whatever_its_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path))
    parent = tmp_path / "v1" / "test"
    left = parent / "making-left"
    left.mkdir(parents=True)
    with making(parent) as held:
        for folder in (held, left):
            os.utime(folder, (0, 0))
        cached("test", {"a": 1}, lambda: {"table": {"a": 1}})
        assert held.is_dir()
        assert not left.exists()
    assert not held.exists()
