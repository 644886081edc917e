"""Caps as they are asked for, and the judge of whether they were kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from timetrial.caps.caps import Caps, caps_of
from timetrial.caps.groups import Group
from timetrial.caps.in_force import InForce, judge, judge_by, keepers
from timetrial.errors import InputError, Unavailable

NOWHERE: dict[str, Path] = {}


def test_without_control_groups_the_kernel_limits_each_process() -> None:
    caps = caps_of({"memory.cap": "512MB", "open_files.cap": "64", "threads": "1"}, NOWHERE)
    assert caps == Caps(memory_bytes=512 << 20, memory_by="data", open_files=64)
    assert caps.options() == [
        *("--memory", "536870912", "--watch-memory", "536870912", "--watch-hz", "10"),
        *("--open-files", "64"),
    ]


def test_a_control_group_comes_first(tmp_path: Path) -> None:
    found = {"memory": tmp_path, "cpu": tmp_path, "pids": tmp_path / "pids"}
    caps = caps_of({"memory.cap": "1GiB", "cpu.cap": "0.5", "processes.cap": "8"}, found)
    assert caps.memory_by == "cgroup"
    assert [dict(one.controllers) for one in caps.groups] == [{"memory": 2.0**30, "cpu": 0.5}, {"pids": 8.0}]
    assert caps.options() == [word for one in caps.groups for word in ("--group", str(one.folder))]


@pytest.mark.parametrize(
    ("way", "options"),
    [
        ("data", ["--memory", "1048576", "--watch-memory", "1048576", "--watch-hz", "10"]),
        ("watchdog", ["--watch-memory", "1048576", "--watch-hz", "100"]),
        ("address_space", ["--address-space", "1048576"]),
    ],
)
def test_by_name(tmp_path: Path, way: str, options: list[str]) -> None:
    caps = caps_of({"memory.cap": "1MiB", "memory.cap_by": way}, {"memory": tmp_path})
    assert (caps.memory_by, caps.options()) == (way, options)


@pytest.mark.parametrize("settings", [{}, {"memory.cap": "none", "memory.cap_by": "data", "cpu.cap": "none"}])
def test_none(settings: dict[str, str]) -> None:
    assert caps_of(settings, NOWHERE) == Caps()
    assert Caps().options() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory.cap": "much"}, "memory.cap='much': expected a size such as 2GB"),
        ({"memory.cap": "-1"}, "memory.cap='-1': expected a size"),
        ({"memory.cap": "512"}, "memory.cap='512': no program starts in 512 bytes; expected 1MiB at least"),
        ({"memory.cap_by": "data"}, "memory.cap_by='data' says who keeps a cap on memory, and there is no"),
        ({"cpu.cap": "0"}, "cpu.cap='0': expected processors, a number from 0.01 on"),
        ({"cpu.cap": "nan"}, "cpu.cap='nan': expected processors"),
        ({"processes.cap": "0"}, "processes.cap='0': expected a whole number from 1 on"),
        ({"open_files.cap": "3"}, "open_files.cap='3': expected a whole number from 16 on"),
        ({"open_files.cap": "1e3"}, "open_files.cap='1e3': expected a whole number"),
    ],
)
def test_bad_values(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as failure:
        caps_of(settings, NOWHERE)
    assert message in str(failure.value)


def test_what_needs_a_group_is_unavailable_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    for settings in (
        {"cpu.cap": "1"},
        {"processes.cap": "8"},
        {"memory.cap": "1GB", "memory.cap_by": "cgroup"},
    ):
        with pytest.raises(Unavailable, match="TIMETRIAL_CGROUP=FOLDER"):
            caps_of(settings, NOWHERE)


def test_users_have_a_limit_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert caps_of({"processes.cap": "8"}, NOWHERE).options() == ["--processes", "8"]


# The judge -----------------------------------------------------------------------------------------------


def seen(settings: dict[str, str], *reports: str, found: dict[str, Path] | None = None) -> InForce:
    one = InForce(caps_of(settings, found or NOWHERE))
    for report in reports:
        one.heard(report, 7)
    return one


DATA = "limits data 536870912 address_space - processes - open_files 1024"
FREE = "limits data - address_space - processes - open_files 1024"


@pytest.mark.parametrize(
    ("report", "effective", "status"),
    [
        (DATA, "512MB", "applied"),
        (DATA.replace("536870912", "536866816"), "512MB", "applied"),  # whole pages
        (DATA.replace("536870912", "612000000"), "6.12e+08", "ignored"),
        (FREE, "none", "ignored"),
        (None, None, "unverifiable"),
    ],
)
def test_a_limit_is_the_kernels_word(report: str | None, effective: str | None, status: str) -> None:
    in_force = seen({"memory.cap": "512MB"}, *([report] if report else []))
    judged = judge("memory.cap", "512MB", in_force)
    assert (judged.effective, judged.status) == (effective, status)
    (keeper,) = keepers({"memory.cap": "512MB"}, in_force)
    assert (keeper.name, keeper.asked, keeper.effective) == ("memory.cap_by", None, "data")


@pytest.mark.parametrize(
    ("reports", "status"),
    [
        (["watched 5 400000000"], "applied"),
        (["watched 0 0"], "ignored"),  # nobody could look
        ([], "unverifiable"),
    ],
)
def test_the_watchdog_has_looked(reports: list[str], status: str) -> None:
    asked = {"memory.cap": "512MB", "memory.cap_by": "watchdog"}
    in_force = seen(asked, FREE, *reports)
    assert judge("memory.cap", "512MB", in_force).status == status
    assert judge_by("watchdog", in_force).effective == "watchdog"
    assert list(keepers(asked, in_force)) == []  # it was asked


def test_a_group_is_kept_only_by_whoever_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"memory.cap": "512MB", "cpu.cap": "0.5"}
    found = {"memory": tmp_path, "cpu": tmp_path}
    answers = {True: ("applied", "applied"), False: ("ignored", "ignored"), None: ("unverifiable",) * 2}
    monkeypatch.setattr(
        Group, "read_back", lambda self, name: {"memory": float(2**29 - 2048), "cpu": 0.5}[name]
    )
    for is_in, statuses in answers.items():
        monkeypatch.setattr(Group, "has", lambda self, pid, is_in=is_in: is_in)
        in_force = seen(asked, FREE, found=found)
        assert tuple(judge(name, word, in_force).status for name, word in asked.items()) == statuses
    monkeypatch.setattr(Group, "has", lambda self, pid: True)
    monkeypatch.setattr(Group, "read_back", lambda self, name: None)  # somebody took the limit away
    in_force = seen(asked, FREE, found=found)
    assert {judge(name, word, in_force).status for name, word in asked.items()} == {"ignored"}


def test_files_and_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    asked = {"open_files.cap": "64", "processes.cap": "8"}
    kept = seen(asked, "limits data - address_space - processes 208 open_files 64")
    assert {judge(name, word, kept).status for name, word in asked.items()} == {"applied"}
    lost = seen(asked, "limits data - address_space - processes - open_files 1024")
    assert {judge(name, word, lost).status for name, word in asked.items()} == {"ignored"}
    assert judge("memory.cap", "none", lost).status == "applied"
