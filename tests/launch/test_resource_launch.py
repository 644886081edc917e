"""A launch that is looked at: steps, an evaluation, its curves; and launches that are not."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from launching import MS, SHORT, make_plan

from timetrial.launch import run_launch
from timetrial.records.meaning import COUNTER_WORDS
from timetrial.records.model import LaunchRecord
from timetrial.records.samples import read_samples, read_thread_samples
from timetrial.results.results import LaunchFiles


def launched(folder: Path, purpose: str, **settings: str) -> LaunchRecord:
    measure = dataclasses.replace(SHORT, resource_ns=60 * MS, epochs=1)
    asked: dict[str, Any] = {
        "threads": "1",
        **{name.replace("_", "."): word for name, word in settings.items()},
    }
    return run_launch(make_plan(folder, "eigen", settings=asked, purpose=purpose, measure=measure))


@pytest.mark.parametrize("purpose", ["resources", "learning"])
def test_its_curve_begins_with_it_and_its_phases_lie_on_it(tmp_path: Path, purpose: str) -> None:
    record = launched(tmp_path / "launch", purpose, samples_hz="200")
    assert record.outcome == "ok", record.reason
    assert {"samples.tsv", "thread_samples.tsv"} <= record.files.keys()
    (setting,) = [one for one in record.settings if one.name == "samples.hz"]
    assert setting.status in ("applied", "adjusted")  # a busy machine
    assert {one.phase for one in record.memory.phases} >= {"build", "steady", "evaluation", "after"}
    files = LaunchFiles(record, tmp_path / "launch")
    samples, curves = files.samples(), files.curves()
    assert samples is not None
    assert curves is not None
    names = [one.name for one in curves.spans]
    assert names[:3] == ["start", "import", "build"]
    assert "evaluation" in names
    began = record.phases[0].ns
    assert began <= samples["time_ns"][0]
    assert max(samples["anonymous_bytes"]) > 0
    assert any(thread.pid == thread.tid for thread in read_thread_samples(files.folder))


@pytest.mark.effect("samples.hz")
def test_who_is_asked_is_looked_at_or_left_alone(tmp_path: Path) -> None:
    launched(tmp_path / "asked", "speed", samples_hz="200")
    launched(tmp_path / "alone", "resources", samples_hz="0")
    assert read_samples(tmp_path / "asked") is not None
    assert read_samples(tmp_path / "alone") is None


def test_who_is_timed_is_not_looked_at(tmp_path: Path) -> None:
    record = launched(tmp_path / "launch", "speed")
    assert record.outcome == "ok", record.reason
    assert read_samples(tmp_path / "launch") is None
    assert not {"samples.tsv", "thread_samples.tsv"} & record.files.keys()


@pytest.mark.attempt
def test_a_place_that_is_taken_is_said_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "samples.tsv").mkdir()
    record = launched(tmp_path / "launch", "resources")
    assert record.outcome == "ok", record.reason
    assert any("could not go on writing what it used: cannot create" in one for one in record.warnings)


@pytest.mark.effect("counters")
def test_counters_are_read_where_nothing_is_timed_or_where_it_is_asked(tmp_path: Path) -> None:
    beside = launched(tmp_path / "beside", "resources")
    asked = launched(tmp_path / "asked", "speed", counters="on")
    for record in (beside, asked):
        assert record.outcome == "ok", record.reason
        assert [one.name for one in record.counters] == list(COUNTER_WORDS)
        for one in record.counters:
            assert (one.per_step is None) == (one.reason is not None), one
    counted = {one.name: one.per_step for one in asked.counters if one.per_step is not None}
    if "task_clock_ns" in counted:
        assert counted["task_clock_ns"] > 0
    [setting] = [one for one in asked.settings if one.name == "counters"]
    assert setting.status == ("applied" if counted else "adjusted")
    assert launched(tmp_path / "off", "resources", counters="off").counters == []
    assert launched(tmp_path / "plain", "speed").counters == []
