"""Races of real contenders: whoever waits stands still, nothing is left behind, and the verdict is right."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from launching import SHORT, make_plan

from timetrial.heats.heat import Report, Ride, Seat
from timetrial.launch import run_launch
from timetrial.processes.contender_process import is_stopped
from timetrial.statistics.verdict import Rule

pytestmark = pytest.mark.alone
TIMETRIAL = [sys.executable, "-m", "timetrial.cli.main"]
LOOK_S = 0.3


def processes_of(folder: Path) -> list[int]:
    """Programs whose command line names the folder: the contender and its supervisor."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


def contender_of(folder: Path) -> int:
    """The process that is no supervisor."""
    (pid,) = [
        pid for pid in processes_of(folder)
        if b"timetrial-exec" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    ]  # fmt: skip
    return pid


def cpu_ns(pid: int) -> int:
    """Of all its threads, from the scheduler."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


class WatchedSeat(Seat):
    """Looks at its contender while it waits."""

    def __init__(self, folder: Path, turns: int):
        super().__init__(threading.Event(), queue.SimpleQueue())
        self.folder, self.turns = folder, turns
        self.burnt_ns: list[int] = []
        self.tasks: list[int] = []
        self.stopped: list[bool | None] = []

    def arrive(self) -> None:
        time.sleep(LOOK_S)
        self.stopped.append(is_stopped(contender_of(self.folder)))

    def wait(self, report: Report) -> Ride | None:
        pid = contender_of(self.folder)
        before = cpu_ns(pid)
        time.sleep(LOOK_S)
        self.burnt_ns.append(cpu_ns(pid) - before)
        self.stopped.append(is_stopped(pid))
        self.tasks.append(len(os.listdir(f"/proc/{pid}/task")))
        self.turns -= 1
        return Ride(10, 0) if self.turns >= 0 else None


@pytest.mark.parametrize("backend", ["cblas", "onednn"])
def test_34_a_waiting_contender_stands_still_with_all_its_threads(tmp_path: Path, backend: str) -> None:
    """Acceptance test 34: pools of OpenBLAS and OpenMP spin after their last region, unless stopped."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a pool of two needs two processors")
    settings = {"threads": "2", **({"parallel": "product"} if backend == "cblas" else {})}
    plan = make_plan(tmp_path / "launch", backend, settings=settings, purpose="race", measure=SHORT)
    seat = WatchedSeat(plan.folder, turns=3)
    record = run_launch(plan, seat=seat)
    assert record.outcome == "ok", record.reason
    assert [segment.kind for segment in record.segments].count("turn") == 3
    assert max(seat.tasks) >= 2
    assert all(seat.stopped)
    assert max(seat.burnt_ns) <= 100_000 * LOOK_S / 0.1  # 0.1 ms of CPU in 100 ms


def test_a_process_that_runs_is_not_stopped() -> None:
    assert is_stopped(os.getpid()) is False
    assert is_stopped(2**22 - 1) is None


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TIMETRIAL_LOCK": str(tmp_path / "lock"),
        "TIMETRIAL_CACHE": str(tmp_path / "cache"),
    }


def start(verb: str, words: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*TIMETRIAL, verb, "network=mlp", "dataset=synthetic", *words],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["race", "run"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_parent_ends_while_a_side_is_stopped(
    tmp_path: Path, environment: dict[str, str], verb: str, number: signal.Signals
) -> None:
    parent = start(verb, ["backend=null,null", "null.work_units=50"], tmp_path, environment)
    deadline = time.monotonic() + 60
    while not any(is_stopped(pid) for pid in processes_of(tmp_path)):
        assert time.monotonic() < deadline, "no side was stopped within a minute"
        time.sleep(0.01)
    parent.send_signal(number)
    printed, _ = parent.communicate(timeout=60)
    while processes_of(tmp_path):
        assert time.monotonic() < deadline, f"left behind: {processes_of(tmp_path)}"
        time.sleep(0.05)
    if number == signal.SIGINT:
        assert parent.returncode == 130
        assert ("interrupted" if verb == "race" else "not measured") in printed


def race(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, dict[str, Any]]:
    process = start("race", [*words, "--json"], folder, environment)
    out, err = process.communicate(timeout=300)
    assert process.returncode in (0, 1, 3, 4), err
    return process.returncode, json.loads(out)


@pytest.mark.full
def test_a_contender_with_a_quarter_more_work_is_slower(tmp_path: Path, environment: dict[str, str]) -> None:
    code, found = race(["backend=null", "null.work_units=40,50", "threads=1"], tmp_path, environment)
    assert (code, found["verdict"], found["confirmed"]) == (1, "worse", True)
    assert found["effect"]["low"] > 0.1
    assert found["pairs"] in Rule().looks


@pytest.mark.full
def test_a_real_crash_is_evidence(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["backend=null", "null.fail=none,abort", "null.fail_after=50"]
    code, found = race(words, tmp_path, environment)
    assert (code, found["verdict"]) == (4, None)
    assert "crash" in found["reason"]
