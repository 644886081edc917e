from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from timetrial import core
from timetrial.core import recorder as recorder_module
from timetrial.errors import InputError, MeasurementError


def test_durations_add_up_to_the_whole_exactly() -> None:
    with core.Recorder() as recorder:
        for boundary in range(64, 200):
            recorder.stamp(boundary)
    times = core.stamp_times_ns(recorder.stamps())
    assert recorder.durations_ns().sum() == times[-1] - times[0]
    assert (recorder.durations_ns() >= 0).all()
    assert recorder.boundaries().tolist() == list(range(64, 200))


def test_stamps_can_be_read_while_they_are_written(tmp_path: Path) -> None:
    recorder = core.Recorder(tmp_path / "stamps")
    assert recorder.stamps().tolist() == []
    before = core.now_ns()
    recorder.begin()
    recorder.stamp()
    assert before <= core.stamp_times_ns(recorder.stamps())[0] <= core.now_ns()
    recorder.stamp_at(200, 77)
    assert recorder.stamps()[-1] == 77 << 8 | 200
    recorder.end()
    assert len(recorder.stamps()) == 3
    recorder.begin()
    assert len(recorder.stamps()) == 1, "begin() starts anew"
    recorder.end()


@pytest.mark.attempt
def test_a_recorder_says_no() -> None:
    recorder = core.Recorder(capacity=3)
    with pytest.raises(MeasurementError, match="call begin"):
        recorder.stamp()
    with recorder:
        with pytest.raises(MeasurementError, match="call end"):
            recorder.begin()
        recorder.stamp()
        with pytest.raises(InputError, match="0 to 255"):
            recorder.stamp(256)
        recorder.stamp()
        with pytest.raises(MeasurementError, match="full: its window has room for 3 stamps"):
            recorder.stamp()
    with pytest.raises(MeasurementError, match="call begin"):
        recorder.stamp()
    with pytest.raises(InputError, match="capacity = 0"):
        core.Recorder(capacity=0)
    with pytest.raises(InputError, match="capacity = 70000"):
        core.Recorder(capacity=70000)


@pytest.mark.attempt
def test_files_that_are_no_recorders(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a recorder file at all")
    with pytest.raises(InputError, match="File exists; a recorder starts a new file"):
        core.Recorder(path)
    with path.open("rb") as file, pytest.raises(InputError, match="TTSTAMPS"):
        core.read_window(file.fileno())
    with pytest.raises(InputError, match="No such file"):
        core.Recorder(tmp_path / "missing" / "stamps")
    with pytest.raises(InputError, match="window = -1"):
        core.read_window(0, -1)
    with pytest.raises(InputError, match="windows = 0"):
        core.create_recorder_file(0)


def test_a_recorder_file_has_its_room_reserved() -> None:
    fd = core.create_recorder_file(windows=2, capacity=1000)
    try:
        status = os.fstat(fd)
        assert status.st_size == 4096 + 2 * 16 * 1000
        assert status.st_blocks * 512 >= status.st_size
        for window in (0, 1):
            stamps, losses = core.read_window(fd, window)
            assert (len(stamps), len(losses)) == (0, 0)
        with pytest.raises(InputError, match="no window 2"):
            core.read_window(fd, 2)
    finally:
        os.close(fd)


@pytest.mark.attempt
def test_no_room_is_a_clear_error() -> None:
    """In a process of its own: no more than a page may be written to a file."""
    script = """
import resource, signal
from timetrial import core
from timetrial.errors import MeasurementError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    core.create_recorder_file()
except MeasurementError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "no room for the recorder file" in result.stdout


@pytest.mark.attempt
def test_stamps_survive_a_killed_writer() -> None:
    script = """
import sys, time
from timetrial.core import _core
recorder = _core.Recorder(int(sys.argv[1]))
recorder.begin(1, 1000)
recorder.stamp(0)
while True:
    time.sleep(0.0005)
    recorder.stamp()
"""
    fd = core.create_recorder_file(2, 1000)
    try:
        writer = subprocess.Popen([sys.executable, "-c", script, str(fd)], pass_fds=[fd])
        deadline = time.monotonic() + 60
        while len(core.read_window(fd, 1)[0]) < 20:
            assert time.monotonic() < deadline
            assert writer.poll() is None
            time.sleep(0.005)
        writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        stamps, losses = core.read_window(fd, 1)
        assert len(stamps) >= 20
        assert len(losses) == len(stamps) - 1
        assert (np.diff(core.stamp_times_ns(stamps)) > 0).all()
        assert set(core.stamp_boundaries(stamps)[1:]) == {recorder_module.STEP}
    finally:
        os.close(fd)


def test_nothing_stays_open() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with core.Recorder(capacity=10) as recorder:
            recorder.stamp()
        del recorder
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_clock_is_pythons_monotonic_clock() -> None:
    before = time.monotonic_ns()
    now = core.now_ns()
    assert before <= now <= time.monotonic_ns()
    assert core.clock_cost_ns() > 0
