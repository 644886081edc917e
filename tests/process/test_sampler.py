"""timetrial-exec --samples: tables of what a contender uses, whatever becomes of them."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from supervised import WAIT_S, Supervised, supervised, wait_until

from timetrial.core import native

MEBIBYTE = 1 << 20
# Waits for a byte, touches memory, burns, forks a child that holds as much, and stands still.
PROGRAM = """
import os, sys, time
time.thread_time()
def burn(seconds):
    while time.thread_time() < seconds: sum(range(1000))
os.read(0, 1)
room = bytearray(96 << 20)
burn(0.2)
if os.fork() == 0:
    time.sleep(1000)
print(time.process_time_ns(), flush=True)
time.sleep(1000)
"""


def lines(file: Path) -> list[dict[str, Any]]:
    """Whole lines only."""
    names, *rows = [line.split("\t") for line in file.read_text().split("\n")[:-1]]
    return [
        {name: word if name == "name" else int(word) for name, word in zip(names, row, strict=True)}
        for row in rows
    ]


def options(folder: Path, hz: int = 200) -> list[str]:
    return ["--samples", str(folder), "--sample-hz", str(hz)]


def until(contender: Supervised, file: Path, what: Callable[[dict[str, Any]], bool], words: str) -> None:
    wait_until(lambda: file.exists() and any(map(what, lines(file))), words)


def test_what_it_holds_and_burns_is_in_the_tables(tmp_path: Path) -> None:
    orders, order = os.pipe()
    answers, answer = os.pipe()
    code = f"import os\nos.dup2({orders}, 0)\nos.dup2({answer}, 1)\n{PROGRAM}"
    samples = tmp_path / "samples.tsv"
    with supervised([sys.executable, "-c", code], options(tmp_path), keep=[orders, answer]) as contender:
        pid = contender.started()
        until(contender, samples, lambda one: one["anonymous_bytes"] > MEBIBYTE, "Python has begun")
        os.write(order, b"x")
        own_ns = int(os.read(answers, 100))
        asked = len(lines(samples))
        until(contender, samples, lambda one: one["processes"] == 2, "the child is seen")
        wait_until(lambda: len(lines(samples)) > asked + 10, "it has been looked at since")
        contender.send("kill")
        assert contender.reports() == ["signaled 9", "gone"]
    for fd in (orders, order, answers, answer):
        os.close(fd)
    seen, threads = lines(samples), lines(tmp_path / "thread_samples.tsv")
    last = seen[-1]
    assert last["cpu_ns"] == pytest.approx(own_ns, rel=0.01, abs=5_000_000)  # it did a little more
    held = [one["anonymous_bytes"] for one in seen if one["processes"] == 1]
    assert max(held) > 96 * MEBIBYTE
    for before, after in itertools.pairwise(seen):
        for counter in ("time_ns", "cpu_ns", "wait_ns", "slices", "peak_bytes", "minor_faults", "own_cpu_ns"):
            assert after[counter] >= before[counter], counter
    assert (threads[0]["pid"], threads[0]["tid"]) == (pid, pid)
    assert threads[0]["name"]
    of_main = [one["cpu_ns"] for one in threads if one["tid"] == pid]
    assert of_main == sorted(of_main)


def test_nobody_looks_unless_asked(tmp_path: Path) -> None:
    with supervised([sys.executable, "-c", "pass"]) as contender:
        contender.started()
        assert contender.reports() == ["exited 0", "gone"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.attempt
def test_tables_that_cannot_be_made_do_not_end_the_contender(tmp_path: Path) -> None:
    with supervised([sys.executable, "-c", "pass"], options(tmp_path / "missing")) as contender:
        contender.started()
        unsampled, *rest = contender.reports()
    assert unsampled.startswith("unsampled cannot create '")
    assert "No such file" in unsampled
    assert rest == ["exited 0", "gone"]


@pytest.mark.attempt
def test_a_folder_that_goes_away_does_not_end_the_contender(tmp_path: Path) -> None:
    folder = tmp_path / "launch"
    folder.mkdir()
    with supervised(["sleep", "1000"], options(folder)) as contender:
        pid = contender.started()
        until(contender, folder / "samples.tsv", lambda one: True, "there is a line")
        shutil.rmtree(folder)
        os.kill(pid, signal.SIGKILL)
        assert contender.reports() == ["signaled 9", "gone"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--samples", "/tmp"], "usage"),
        (["--sample-hz", "20"], "usage"),
        (["--samples", "/tmp", "--sample-hz", "0"], "from 1 to 1000"),
    ],
)
def test_half_of_the_options_is_refused(words: list[str], says: str) -> None:
    with supervised(["true"], words) as contender:
        assert says in contender.reports()[0]
        assert contender.process.wait(WAIT_S) == 2
    assert native.exec_path().exists()
