"""Caps in launches: each is in force, what runs into one is `capped`, and the record shows how."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from groups import group_place
from launching import MS, SHORT, make_plan, words

from timetrial.caps import caps
from timetrial.launch import Limits, run_launch
from timetrial.records.model import LaunchRecord, Setting

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")
BRIEF = dataclasses.replace(
    SHORT,
    max_steps=80,
    min_ns=60_000 * MS,
    budget_ns=60_000 * MS,
    limits=Limits(start_timeout_s=60.0, progress_timeout_s=20.0),
)


def launched(folder: Path, backend: str, settings: dict[str, str], **more: object) -> LaunchRecord:
    return run_launch(make_plan(folder / "launch", backend, settings=settings, measure=BRIEF, **more))  # type: ignore[arg-type]


def setting(record: LaunchRecord, name: str) -> Setting:
    return next(one for one in record.settings if one.name == name)


@pytest.mark.effect("memory.cap")
@pytest.mark.effect("memory.cap_by")
@pytest.mark.parametrize("way", ["data", "address_space", "watchdog"])
def test_what_grows_beyond_its_cap_is_capped(tmp_path: Path, way: str) -> None:
    asked = {"null.fail": "grow", "memory.cap": "200MiB", "memory.cap_by": way}
    record = launched(tmp_path, "null", asked)
    assert record.outcome == "capped", words(record)
    cap, by = setting(record, "memory.cap"), setting(record, "memory.cap_by")
    assert (cap.status, cap.effective) == ("applied", "200MiB"), cap
    assert (by.status, by.effective) == ("applied", way)
    ending = record.ending
    assert ending is not None
    assert ending.cause == ("watchdog" if way == "watchdog" else "refused")
    assert (ending.caps or "").startswith("memory.cap=209715200 (")
    assert (ending.boundary or "").startswith("step ")
    # What was known until then: how it was started, what it held.
    assert [phase.name for phase in record.phases] == ["exec", "start", "import", "build"]
    assert record.memory.phases
    assert sum(segment.steps for segment in record.segments) > 0


def test_a_proof_that_is_capped_has_a_curve(tmp_path: Path) -> None:
    asked = {"null.fail": "grow", "null.fail_at": "build", "null.fail_after": "0", "memory.cap": "8MiB"}
    record = launched(tmp_path, "null", asked, purpose="proof")
    assert record.outcome == "capped", words(record)
    assert "samples.tsv" in record.files


def test_the_same_without_a_cap_is_not(tmp_path: Path) -> None:
    record = launched(tmp_path, "null", {"null.fail": "grow", "memory.cap": "none"})
    assert record.outcome == "oom", words(record)
    assert record.ending is not None
    assert (record.ending.cause, record.ending.caps) == ("refused", None)
    assert setting(record, "memory.cap").status == "applied"


def test_who_keeps_it_stands_in_the_record(tmp_path: Path) -> None:
    record = launched(tmp_path, "null", {"memory.cap": "1GB", "samples.hz": "20"})
    assert record.outcome == "ok", words(record)
    assert record.ending is None
    by = setting(record, "memory.cap_by")
    assert (by.asked, by.effective) == (None, "data")
    assert "10 times a second" in setting(record, "memory.cap").how_read
    assert setting(record, "memory.cap").status == "applied"


@pytest.mark.attempt
def test_several_processes_hold_together_what_each_may_not(tmp_path: Path) -> None:
    """RLIMIT_DATA is of one process: beside it somebody watches all."""
    asked = {"planted.behavior": "hold", "memory.cap": "300MiB"}
    slowly = dataclasses.replace(BRIEF, max_steps=1_000_000)
    plan = make_plan(tmp_path / "launch", PLANTED, settings=asked, measure=slowly)
    record = run_launch(plan)
    assert record.outcome == "capped", words(record)
    assert record.ending is not None
    assert record.ending.cause == "watchdog"
    assert (record.ending.held_bytes or 0) > 300 << 20


def test_a_cap_below_what_the_program_needs_itself(tmp_path: Path) -> None:
    record = launched(tmp_path, PLANTED, {"memory.cap": "2MiB"})
    assert record.outcome in ("capped", "crash"), words(record)
    assert "memory.cap=2097152 (RLIMIT_DATA)" in (record.reason or "")
    assert record.ending is not None
    assert record.ending.boundary == "exec"
    assert setting(record, "memory.cap").status == "applied"


@pytest.mark.attempt
def test_memory_that_a_signal_handler_asks_for(tmp_path: Path) -> None:
    asked = {"planted.behavior": "handler", "memory.cap": "2GiB"}
    long = dataclasses.replace(BRIEF, max_steps=1_000_000)
    record = run_launch(make_plan(tmp_path / "launch", PLANTED, settings=asked, measure=long))
    assert record.outcome == "capped", words(record)
    assert record.ending is not None
    assert record.ending.cause == "refused"


@pytest.mark.effect("open_files.cap")
@pytest.mark.parametrize(
    ("cap", "outcome"), [("100", "capped"), pytest.param("1000", "ok", marks=pytest.mark.full)]
)
def test_open_files(tmp_path: Path, cap: str, outcome: str) -> None:
    record = launched(tmp_path, PLANTED, {"planted.behavior": "files", "open_files.cap": cap})
    assert record.outcome == outcome, words(record)
    assert setting(record, "open_files.cap").status == "applied"
    assert outcome == "ok" or f"open_files.cap={cap}" in (record.reason or "")


@pytest.fixture
def grouped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where control groups for one controller are made; what is there again behind the test."""
    place = group_place(request.param)
    monkeypatch.setenv("TIMETRIAL_CGROUP", str(place))
    caps._places.cache_clear()
    return place


@pytest.fixture(autouse=True)
def forget_places() -> Iterator[None]:
    caps._places.cache_clear()
    yield
    caps._places.cache_clear()


@pytest.mark.effect("processes.cap")
@pytest.mark.parametrize("grouped", ["pids"], indirect=True)
@pytest.mark.parametrize(
    ("cap", "outcome"), [("1", "capped"), pytest.param("200", "ok", marks=pytest.mark.full)]
)
def test_processes(tmp_path: Path, grouped: Path, cap: str, outcome: str) -> None:
    record = launched(tmp_path, PLANTED, {"planted.behavior": "children", "processes.cap": cap})
    assert record.outcome == outcome, words(record)
    assert setting(record, "processes.cap").status == "applied"
    assert not list(grouped.glob(f"timetrial-{os.getpid()}-*"))


@pytest.mark.effect("cpu.cap")
@pytest.mark.parametrize("grouped", ["cpu"], indirect=True)
def test_processors(tmp_path: Path, grouped: Path) -> None:
    record = launched(tmp_path, "null", {"cpu.cap": "0.5", "null.work_units": "10"})
    assert record.outcome == "ok", words(record)
    assert (setting(record, "cpu.cap").status, setting(record, "cpu.cap").effective) == ("applied", "0.5")
    assert not list(grouped.glob(f"timetrial-{os.getpid()}-*"))


# Endings -------------------------------------------------------------------------------------------------


@pytest.mark.attempt
def test_a_hang_shows_where_it_stands(tmp_path: Path) -> None:
    impatient = dataclasses.replace(BRIEF, limits=Limits(start_timeout_s=60.0, progress_timeout_s=2.0))
    asked = {"planted.behavior": "hang"}
    record = run_launch(make_plan(tmp_path / "launch", PLANTED, settings=asked, measure=impatient))
    assert record.outcome == "hang", words(record)
    ending = record.ending
    assert ending is not None
    assert any("in _wait_for_ever" in line for line in ending.stack)
    assert ending.boundary == "step 3"
    main = next(one for one in ending.threads)
    assert main.state == "S"
    if os.getuid() == 0:
        assert "clock_nanosleep" in f"{main.system_call} {main.waits_in} {main.kernel_stack}"


@pytest.mark.attempt
def test_a_crash_in_python_shows_its_stack(tmp_path: Path) -> None:
    record = launched(tmp_path, PLANTED, {"planted.behavior": "segv"})
    assert record.outcome == "crash", words(record)
    ending = record.ending
    assert ending is not None
    assert ending.signal == "SIGSEGV"
    assert any("in _behave" in line for line in ending.stack)
    assert ending.last_lines


@pytest.mark.attempt
def test_a_native_crash_shows_its_stack(tmp_path: Path) -> None:
    record = launched(tmp_path, "null", {"null.fail": "abort"})
    assert record.outcome == "crash", words(record)
    ending = record.ending
    assert ending is not None
    assert ending.signal == "SIGABRT"
    assert ending.stack[0].startswith("timetrial-child: stack at signal 6")
    assert any("null" in line for line in ending.stack)


@pytest.mark.attempt
def test_a_crash_without_a_stack_has_none(tmp_path: Path) -> None:
    record = launched(tmp_path, PLANTED, {"planted.behavior": "kill"})
    assert record.outcome == "crash", words(record)
    assert record.ending is not None
    assert (record.ending.signal, record.ending.stack, record.ending.cause) == ("SIGKILL", [], None)
    assert record.ending.boundary == "step 11"
