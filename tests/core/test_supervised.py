"""A program that is supervised ends with whoever started it, and is reported as it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from timetrial.core.supervised import Supervised

PARENT = """
import sys, time
from timetrial.core.supervised import Supervised
with Supervised(["sh", "-c", "(setsid sleep 1000 & echo $! > " + sys.argv[1] + "); sleep 1000"]) as program:
    program.wait()
"""


@pytest.mark.attempt
@pytest.mark.parametrize(("code", "expected"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9)])
def test_how_it_ended(code: str, expected: int) -> None:
    with Supervised(["sh", "-c", code]) as program:
        assert program.wait(30) == expected


def test_what_it_says_is_read_to_its_end() -> None:
    with Supervised(["sh", "-c", "echo one; echo two"], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.read() == "one\ntwo\n"
        assert program.wait(30) == 0


@pytest.mark.attempt
def test_one_that_is_not_there() -> None:
    with Supervised(["/no/such/program"]) as program, pytest.raises(OSError, match="/no/such/program"):
        program.wait(30)


@pytest.mark.attempt
def test_leaving_ends_it_whatever_it_started(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    words = f"(setsid sleep 1000 & echo $! > {tmp_path}/pid); sleep 1000"
    with Supervised(["sh", "-c", words]) as program:
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.5)
        pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.attempt
def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "pid")])
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
