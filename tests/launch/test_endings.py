"""However the parent ends, nothing is left running; whatever the disk does, there are words."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from launching import make_plan
from test_outcomes import processes_of

from timetrial.errors import MeasurementError
from timetrial.launch import run_launch
from timetrial.launch.segments import SampleFiles

pytestmark = pytest.mark.attempt

WAIT_S = 20.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {WAIT_S} s until {what}"
        time.sleep(0.01)


@contextlib.contextmanager
def parent(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A launch in mid-segment, in a process of its own. The contender writes stamps when this begins."""
    script = Path(__file__).with_name("one_launch.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder), "null", "null.step_us=1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        wait_until(
            lambda: (folder / "stamps.bin").exists() and len(processes_of(folder)) >= 3, "the contender runs"
        )
        time.sleep(0.3)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_the_parent_ends(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "launch"
    with parent(folder) as process:
        process.send_signal(number)
        process.wait(WAIT_S)
        wait_until(lambda: processes_of(folder) == [], "everything is gone")
        if number == signal.SIGINT:
            assert "KeyboardInterrupt" in process.communicate()[1]
    assert not (folder / "record.json").exists()


def test_ctrl_c_in_the_terminal_reaches_everybody(tmp_path: Path) -> None:
    """A terminal signals its whole foreground group: the contender must not answer for itself."""
    folder = tmp_path / "launch"
    with parent(folder) as process:
        groups = {os.getpgid(pid) for pid in processes_of(folder)}
        assert len(groups) == 3  # parent, supervisor, contender
        process.send_signal(signal.SIGINT)
        wait_until(lambda: processes_of(folder) == [], "everything is gone")


def test_cancel(tmp_path: Path) -> None:
    cancel = threading.Event()
    folder = tmp_path / "launch"
    timer = threading.Timer(0.5, cancel.set)
    timer.start()
    plan = make_plan(folder, "null", settings={"null.fail": "hang"})
    with pytest.raises(KeyboardInterrupt):  # and no record of a hang
        run_launch(plan, cancel=cancel)
    timer.join()
    assert processes_of(folder) == []
    assert not (folder / "record.json").exists()


def test_an_interrupt_between_two_files_is_no_fault_of_the_contender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come when stamps are written and losses are not."""
    append = SampleFiles.append

    def interrupted(files: SampleFiles, stamps: Any, losses: Any) -> None:
        if files.stamps > 10:
            files._files[0].write(stamps.tobytes())
            raise KeyboardInterrupt
        append(files, stamps, losses)

    monkeypatch.setattr(SampleFiles, "append", interrupted)
    folder = tmp_path / "launch"
    with pytest.raises(KeyboardInterrupt):
        run_launch(make_plan(folder, "null", settings={"null.step_us": "500"}))
    assert processes_of(folder) == []
    assert sorted(os.listdir(folder)) == ["job.json", "losses.bin", "stamps.bin", "stderr.txt", "stdout.txt"]


def test_descriptors_do_not_leak(tmp_path: Path) -> None:
    for i, fail in enumerate(("none", "segv", "throw")):
        run_launch(make_plan(tmp_path / f"warm{i}", "null", settings={"null.fail": fail}))
    gc.collect()  # what tests before this one left
    before = os.listdir("/proc/self/fd")
    for i, fail in enumerate(("none", "segv", "throw")):
        run_launch(make_plan(tmp_path / f"launch{i}", "null", settings={"null.fail": fail}))
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("purpose", ["proof", "speed"])
def test_what_was_judged_holds_no_descriptors(tmp_path: Path, purpose: str) -> None:
    """Tensors are mapped, hundreds of them: they must go with the launch, and not when memory gets short."""

    def launch(name: str) -> None:
        record = run_launch(make_plan(tmp_path / name, "eigen", purpose=purpose))
        assert record.outcome == "ok", record.reason

    launch("warm")
    gc.collect()
    gc.disable()
    try:
        before = os.listdir("/proc/self/fd")
        launch("again")
        assert len(os.listdir("/proc/self/fd")) <= len(before) + 3
    finally:
        gc.enable()


def test_it_works_whatever_descriptors_the_caller_has(tmp_path: Path) -> None:
    """Notebooks close and open the low numbers; the contender's 3 to 7 must come out right."""
    script = (
        "import os, sys\n"
        "os.close(0)\n"
        "[os.dup(2) for _ in range(int(sys.argv.pop(1)))]\n"
        "sys.argv = sys.argv[1:]\n"
        "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    one_launch = str(Path(__file__).with_name("one_launch.py"))
    for held in ("0", "3", "6"):
        folder = tmp_path / held
        done = subprocess.run(
            [sys.executable, "-c", script, held, one_launch, str(folder), "null", "null.fail=throw"],
            capture_output=True,
            text=True,
        )
        assert "crash null.fail = throw" in done.stdout, done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(MeasurementError, match="choose a results folder that you can write"):
            run_launch(make_plan(tmp_path / "launch", "null"))
    finally:
        tmp_path.chmod(0o755)


def test_a_folder_where_nothing_can_be_made() -> None:
    with pytest.raises(MeasurementError, match=r"/proc/launch.* cannot be written"):
        run_launch(make_plan(Path("/proc/launch"), "null"))


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk without room: the same error from write()."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    plan = make_plan(tmp_path / "launch", "null", settings={"null.step_us": "0"})
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
        with pytest.raises(MeasurementError, match="cannot be written"):
            run_launch(plan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert processes_of(tmp_path / "launch") == []
    assert not (tmp_path / "launch" / "record.json").exists()
