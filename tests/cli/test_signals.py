"""Signals during the clean-up: GNU `timeout` sends two, and whoever is impatient sends three."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from left_running import command_lines_with

from timetrial.cases.case import Case
from timetrial.experiment.resume import session
from timetrial.heats.heat import Course, Heat, Report, Seat
from timetrial.launch import MeasurementLock
from timetrial.races import Race
from timetrial.stopping import shielded, stopped_like_ctrl_c

pytestmark = pytest.mark.attempt
SIGNALS = [signal.SIGINT, signal.SIGTERM]
STEPS = "import time\n\n\ndef first():\n    return lambda: time.sleep(0.002)\n\n\nsecond = first\n"
MS = 1_000_000


@pytest.fixture
def world(tmp_path: Path) -> dict[str, Any]:
    """Of a process: two steps in its working folder, a lock and a cache of its own."""
    (tmp_path / "steps.py").write_text(STEPS)
    env = {**os.environ, "TIMETRIAL_LOCK": str(tmp_path / "lock"), "TIMETRIAL_CACHE": str(tmp_path / "cache")}
    return {"cwd": tmp_path, "env": env, "text": True}


def signalled(world: dict[str, Any], how: str, number: int, many: int) -> subprocess.CompletedProcess[str]:
    """A process that hangs, as it did when clean-ups could be interrupted, raises TimeoutExpired."""
    script = str(Path(__file__).with_name("signalled.py"))
    command = [sys.executable, script, how, str(int(number)), str(many)]
    return subprocess.run(command, capture_output=True, timeout=120, **world)


def check_nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while left := command_lines_with(f"{folder}/results"):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    with MeasurementLock(folder / "lock"):
        pass


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_between_two_seats_is_only_noted(
    world: dict[str, Any], tmp_path: Path, number: signal.Signals
) -> None:
    ended = signalled(world, "cli", number, 2)
    assert ended.returncode == 128 + number, ended.stderr
    assert json.loads(ended.stdout)["reason"] == "interrupted"
    assert "The next signal ends this process at once" in ended.stderr
    assert "Traceback" not in ended.stderr
    check_nothing_is_left(tmp_path)


@pytest.mark.parametrize("number", SIGNALS)
def test_nor_does_it_interrupt_a_program_of_the_users(
    world: dict[str, Any], tmp_path: Path, number: signal.Signals
) -> None:
    ended = signalled(world, "python", number, 2)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert (said["threads"], said["usual"]) == ([], True)
    assert Race(Path(said["folder"])).end is not None
    check_nothing_is_left(tmp_path)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_third_ends_everything_at_once(
    world: dict[str, Any], tmp_path: Path, number: signal.Signals
) -> None:
    """The contenders are stopped then, and their supervisors alone are left to end them."""
    ended = signalled(world, "cli", number, 3)
    assert ended.returncode == -number, ended.stderr
    assert "ends this process at once" in ended.stderr
    check_nothing_is_left(tmp_path)


def test_two_from_outside_at_any_moment(world: dict[str, Any], tmp_path: Path) -> None:
    """As `timeout` sends them, to the process and to its group."""
    words = [
        sys.executable,
        "-m",
        "timetrial.cli.main",
        "race",
        "callable=steps:first,steps:second",
        "threads=1",
        "--json",
    ]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **world)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("results/*/pairs/001")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 128 + signal.SIGTERM, err
    assert "Traceback" not in err
    check_nothing_is_left(tmp_path)


def rides(seat: Seat, cancel: threading.Event) -> Any:
    seat.arrive()
    while seat.wait(Report(MS)) is not None:
        pass


def breaks(seat: Seat, cancel: threading.Event) -> Any:
    seat.arrive()
    seat.wait(Report(MS))
    raise OSError("the disk is full")


def seats() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("seat")]


def test_a_first_signal_waits_for_the_end_of_a_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that something else began."""
    release = Seat.release

    def signalled_release(seat: Seat) -> None:
        if not released:
            signal.raise_signal(signal.SIGTERM)
        released.append(seat)
        release(seat)

    released: list[Seat] = []
    monkeypatch.setattr(Seat, "release", signalled_release)
    heat = Heat([rides, breaks, rides], Course([(0, 1, 2)] * 5))
    try:
        with stopped_like_ctrl_c():
            with pytest.raises(KeyboardInterrupt) as interrupted:
                heat.run()
            assert isinstance(interrupted.value.__context__, OSError)
            assert len(released) == 3
            assert not seats()
    finally:
        for seat in heat._seats:
            release(seat)


def test_a_heat_that_nobody_has_yet_is_ended_with_its_session(tmp_path: Path) -> None:
    """An interrupt may come when it has begun, and before whoever began it knows."""
    heat = Heat([rides, rides], Course([(0, 1)]))

    def begin() -> None:
        with session(tmp_path):
            heat.run()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert not seats()


def test_only_what_ends_contenders_is_shielded() -> None:
    done = []

    @shielded
    def inner() -> None:
        signal.raise_signal(signal.SIGTERM)
        done.append("inner")

    @shielded
    def outer() -> None:
        inner()
        done.append("outer")

    with stopped_like_ctrl_c():
        with pytest.raises(KeyboardInterrupt):
            outer()
        assert done == ["inner", "outer"]
    with stopped_like_ctrl_c(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_programs_own_stays() -> None:
    own = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        before = signal.getsignal(signal.SIGTERM)
        with stopped_like_ctrl_c():
            assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGTERM, own)


def test_outside_the_main_thread_nothing_changes(raced: Callable[..., Race], fake: FakeEngine) -> None:
    """Python delivers signals in the main thread, and lets no other one set handlers."""
    handlers, found = [signal.getsignal(one) for one in SIGNALS], []

    def before(plan: Any) -> None:
        assert isinstance(plan.case, Case)
        assert [signal.getsignal(one) for one in SIGNALS] == handlers

    fake.before = before
    thread = threading.Thread(target=lambda: found.append(raced("backend=fast,slow")))
    thread.start()
    thread.join()
    assert found[0].verdict == "worse"
