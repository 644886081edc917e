"""One measurement at a time: the second one is told who is measuring."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from timetrial.errors import InputError, MeasurementError
from timetrial.launch import MeasurementLock

HOLD = """
import sys, time
from timetrial.launch import MeasurementLock
with MeasurementLock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_one_is_told_who(own_lock: Path) -> None:
    with MeasurementLock(), pytest.raises(InputError) as raised:
        MeasurementLock().__enter__()
    assert f"process {os.getpid()} (" in str(raised.value)
    assert "since 20" in str(raised.value)
    assert str(own_lock) in str(raised.value)


def test_it_is_free_afterwards() -> None:
    for _ in range(2):
        with MeasurementLock():
            pass


def test_a_killed_holder_holds_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"process {holder.pid} "):
            MeasurementLock().__enter__()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with MeasurementLock():
            pass


def test_a_lock_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIMETRIAL_LOCK", str(tmp_path / "no" / "such" / "lock"))
    with pytest.raises(MeasurementError, match="set TIMETRIAL_LOCK"):
        MeasurementLock().__enter__()
