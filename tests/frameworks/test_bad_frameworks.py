"""Frameworks that misbehave, each planted in one place: what they do is in the record."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from launching import SHORT, make_plan, words

from timetrial.control.paths import slower_paths
from timetrial.launch import Limits, run_launch
from timetrial.records.model import LaunchRecord

PLANTED = Path(__file__).parent / "planted" / "adapter.py"

# The NumPy framework of the tests, with a line before its import and one in each step.
ADAPTER = """
import hashlib
import importlib.util
import os
import sys
import threading
import time

spec = importlib.util.spec_from_file_location("planted_base", {path!r})
base = importlib.util.module_from_spec(spec)
spec.loader.exec_module(base)


def spin():
    block = bytes(1 << 22)
    while True:
        hashlib.sha256(block)  # without the GIL: the step beside it works too, on a busy machine as well


class Adapter(base.Adapter):
    def load(self, settings):
        {at_import}
        super().load(settings)

    def step(self):
        {in_step}
        return super().step()
"""

ENVIRONMENT = """
[[versions]]
version = "1"
modules = {numpy = "numpy"}
serves = ">=1.0"
MORE

[versions.settings.threads]
environment = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
"""


def launch(
    folder: Path, *, at_import: str = "pass", in_step: str = "pass", more: str = "", **limits: float
) -> LaunchRecord:
    framework = folder / "framework"
    framework.mkdir()
    text = ADAPTER.format(path=str(PLANTED), at_import=at_import, in_step=in_step)
    (framework / "adapter.py").write_text(text)
    (framework / "environment.toml").write_text(ENVIRONMENT.replace("MORE", more))
    measure = dataclasses.replace(
        SHORT, limits=Limits(**{"start_timeout_s": 60.0, "progress_timeout_s": 20.0, **limits})
    )
    return run_launch(
        make_plan(folder / "launch", str(framework), settings={"threads": "1"}, measure=measure)
    )


def threads_of(record: LaunchRecord) -> tuple[str | None, str]:
    found = next(setting for setting in record.settings if setting.name == "threads")
    return found.effective, found.status


def test_one_that_behaves(tmp_path: Path) -> None:
    record = launch(tmp_path)
    assert record.outcome == "ok", words(record)
    assert threads_of(record) == ("1", "applied")
    assert "environment changed at import" not in record.facts
    assert record.warnings == []


@pytest.mark.attempt
def test_output_at_import_is_not_taken_for_events(tmp_path: Path) -> None:
    noise = (
        """print('{"event": "ready", "phases": []}'); sys.stdout.flush(); sys.stderr.write("a warning\\n")"""
    )
    record = launch(tmp_path, at_import=noise)
    assert record.outcome == "ok", words(record)
    assert '"phases": []' in record.stdout
    assert "a warning" in record.stderr


@pytest.mark.attempt
def test_a_changed_environment_is_a_fact(tmp_path: Path) -> None:
    change = 'os.environ["OMP_NUM_THREADS"] = "7"; os.environ["ITS_OWN"] = "x"'
    record = launch(tmp_path, at_import=change)
    assert record.outcome == "ok", words(record)
    assert record.facts["environment changed at import"] == "ITS_OWN unset -> x, OMP_NUM_THREADS 1 -> 7"
    assert record.environment["OMP_NUM_THREADS"] == "1"


def test_threads_that_sleep_do_no_harm(tmp_path: Path) -> None:
    sleeper = "threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()"
    record = launch(tmp_path, at_import=sleeper)
    assert record.outcome == "ok", words(record)
    assert threads_of(record) == ("1", "applied")


@pytest.mark.attempt
def test_one_that_would_hang_when_it_is_taken_apart(tmp_path: Path) -> None:
    """It is not: it leaves at once, with what it had said into the buffers of Python and C."""
    slow = "import atexit, ctypes; atexit.register(time.sleep, 1000); "
    said = "ctypes.CDLL(None).printf(b'of C\\n'); print('of Python')"
    record = launch(tmp_path, at_import=slow + said, progress_timeout_s=10)
    assert record.outcome == "ok", words(record)
    assert set(record.stdout.split("\n")) >= {"of C", "of Python"}


@pytest.mark.attempt
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_threads_that_work_are_seen(tmp_path: Path) -> None:
    record = launch(tmp_path, at_import="threading.Thread(target=spin, daemon=True).start()")
    assert record.outcome == "mismatch", words(record)
    assert threads_of(record) == ("2", "ignored")
    assert record.reason == "threads asked 1, working 2"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("sys.exit(3)", "SystemExit: 3 (load)"),
        ("exit(3)", "SystemExit: 3 (load)"),
        ("os._exit(3)", "the contender ended by itself with exit code 3 during start"),
        ("os._exit(0)", "the contender ended by itself with exit code 0 during start"),
    ],
)
def test_an_exit_at_import(tmp_path: Path, statement: str, said: str) -> None:
    record = launch(tmp_path, at_import=statement)
    assert (record.outcome, record.reason) == ("crash", said)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("sys.exit(3)", "SystemExit: 3 (run)"),
        (
            "os._exit(3)",
            "the contender ended by itself with exit code 3 during a segment",
        ),
    ],
)
def test_an_exit_in_a_step(tmp_path: Path, statement: str, said: str) -> None:
    record = launch(tmp_path, in_step=statement)
    assert record.outcome == "crash"
    assert (record.reason or "").startswith(said)


def test_a_slower_way_through_layers_is_named(tmp_path: Path) -> None:
    """By the launch's own facts; a way alone is no reason to warn."""
    ways = {"one forward": "a loop", "two forward": "a loop", "three forward": "a kernel"}
    cures = {"one faster": "mode=graph", "two faster": "mode=graph", "four faster": "x"}
    say = f"base.Adapter.facts = lambda self: {ways | cures!r}"
    record = launch(tmp_path, at_import=say)
    assert record.outcome == "ok", words(record)
    assert record.warnings == [
        "'one', 'two': a loop, which is not the fastest way that the library has: mode=graph"
    ]
    assert {name: record.facts[name] for name in ways} == ways
    assert slower_paths(ways) == []


@pytest.mark.attempt
def test_an_import_beyond_the_limit(tmp_path: Path) -> None:
    record = launch(tmp_path, at_import="time.sleep(1000)", start_timeout_s=1.0)
    assert record.outcome == "hang"
    assert record.reason == (
        "no progress for 1 s of running time during start; ended by us; "
        "start_timeout_s=2 gives import and build more time"
    )


def test_the_first_step_may_take_as_long_as_an_import(tmp_path: Path) -> None:
    """It may compile; the steps after it may not take so long."""
    slow = "time.sleep(2 if self.steps == 0 else 0)"
    record = launch(tmp_path, in_step=slow, progress_timeout_s=1.0)
    assert record.outcome == "ok", words(record)
    (tmp_path / "second").mkdir()
    slow = "time.sleep(1000 if self.steps else 0)"
    later = launch(tmp_path / "second", in_step=slow, progress_timeout_s=1.0)
    assert later.outcome == "hang"


@pytest.mark.attempt
def test_what_is_written_to_the_home_folder_is_named(tmp_path: Path) -> None:
    write = 'open(os.path.expanduser("~/.compiled"), "w").write("x" * 1000)'
    record = launch(tmp_path, at_import=write)
    assert record.outcome == "ok", words(record)
    assert record.warnings == [
        "it wrote 1000 bytes into its home folder, which every launch gets anew: .compiled 1000"
    ]
