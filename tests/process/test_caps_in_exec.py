"""timetrial-exec keeps caps: what it sets is what the kernel says, and the watch ends what holds too much."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from supervised import supervised, wait_until

HOLD = "import sys; kept = bytearray({0} << 20); sys.stdin.read() if {1} else None"
# Half of it in a child, that has left its session.
TWO = """
import os, time
kept = bytearray(48 << 20)
if os.fork() == 0:
    os.setsid()
    more = bytearray(48 << 20)
    time.sleep(1000)
time.sleep(1000)
"""


def hold(mebibytes: int, stays: bool = False) -> list[str]:
    return [sys.executable, "-c", HOLD.format(mebibytes, stays)]


def test_limits_are_told_as_the_kernel_has_them() -> None:
    options = ["--memory", str(256 << 20), "--open-files", "64", "--address-space", str(1 << 40)]
    with supervised(["true"], options) as contender:
        contender.started()
        words = contender.report()
    assert words is not None
    limits = dict(zip(words.split()[1::2], words.split()[2::2], strict=True))
    assert words.startswith("limits ")
    assert (limits["data"], limits["open_files"]) == (str(256 << 20), "64")
    assert limits["address_space"] == str(1 << 40)


@pytest.mark.attempt
def test_the_watch_ends_what_holds_too_much() -> None:
    with supervised(hold(256, stays=True), ["--watch-memory", str(64 << 20)]) as contender:
        contender.started()
        limits, capped, signaled, watched, gone = contender.reports()
    assert limits.startswith("limits data - ")
    assert capped.startswith("capped ")
    assert int(capped.split()[1]) > 64 << 20
    assert (signaled, gone) == ("signaled 9", "gone")
    assert watched.split()[0] == "watched"
    assert int(watched.split()[1]) > 0


@pytest.mark.attempt
def test_the_watch_counts_the_whole_tree() -> None:
    with supervised([sys.executable, "-c", TWO], ["--watch-memory", str(80 << 20)]) as contender:
        contender.started()
        assert any(report.startswith("capped ") for report in contender.reports())


def test_the_watch_leaves_alone_what_holds_less() -> None:
    with supervised(hold(8), ["--watch-memory", str(1 << 30), "--watch-hz", "1000"]) as contender:
        contender.started()
        _, exited, watched, gone = contender.reports()
    assert (exited, gone) == ("exited 0", "gone")
    assert 0 < int(watched.split()[2]) < 1 << 30


def test_a_group_is_entered_before_all_else(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("")
    with supervised(["true"], ["--group", str(tmp_path)]) as contender:
        contender.started()
    assert (tmp_path / "cgroup.procs").read_text() == "0"


def test_a_group_that_cannot_be_entered_is_an_error(tmp_path: Path) -> None:
    with supervised(["true"], ["--group", str(tmp_path / "none")]) as contender:
        error, gone = contender.reports()
    assert error.startswith("error cannot enter the control group ")
    assert "No such file" in error
    assert gone == "gone"


def test_a_group_goes_when_the_parent_is_gone(tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "cgroup.procs").write_text("")
    with supervised(["sleep", "1000"], ["--group", str(group)]) as contender:
        contender.started()
        (group / "cgroup.procs").unlink()  # what the kernel keeps there does not count for rmdir()
        contender.leave()
        wait_until(lambda: not group.exists(), "the group is gone")
