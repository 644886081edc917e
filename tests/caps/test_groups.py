"""Control groups of our own, on trees of files that stand for the kernel's, and on the real ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from groups import group_place

from timetrial.caps.groups import Group, places, plan_groups
from timetrial.errors import InputError

V1 = """\
cgroup /cg/memory cgroup rw,relatime,memory 0 0
cgroup /cg/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /cg/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /cg/unified cgroup2 rw,relatime 0 0
"""
V2 = "cgroup2 /cg cgroup2 rw,relatime 0 0\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def v1(root: Path) -> Path:
    for folder in ("cg/memory/a", "cg/cpu,cpuacct", "cg/systemd", "cg/unified"):
        (root / folder).mkdir(parents=True)
    own = "4:memory:/a\n3:cpu,cpuacct:/\n2:name=systemd:/\n0::/\n"
    return write(root, {"proc/self/mounts": V1, "proc/self/cgroup": own})


def v2(root: Path, *, limit: str = "max", above: str = "memory pids") -> Path:
    return write(
        root,
        {
            "proc/self/mounts": V2,
            "proc/self/cgroup": "0::/slice/own\n",
            "cg/cgroup.controllers": "cpu memory pids",
            "cg/cgroup.subtree_control": "",
            "cg/slice/cgroup.controllers": "cpu memory pids",
            "cg/slice/cgroup.subtree_control": above,
            "cg/slice/own/cgroup.controllers": "memory pids",
            "cg/slice/own/cgroup.subtree_control": "",
            "cg/slice/own/memory.max": limit,
        },
    )


def test_version_1_has_them_below_its_own(tmp_path: Path) -> None:
    root = v1(tmp_path)
    assert places(root, user=1000, named="") == {
        "memory": root / "cg/memory/a",
        "cpu": root / "cg/cpu,cpuacct",
    }


def test_version_2_has_them_beside_its_own(tmp_path: Path) -> None:
    """A group with processes has none with controllers below it."""
    root = v2(tmp_path)
    assert places(root, user=1000, named="") == {"memory": root / "cg/slice", "pids": root / "cg/slice"}


def test_nobody_leaves_a_group_that_has_a_limit(tmp_path: Path) -> None:
    assert places(v2(tmp_path, limit="1000"), user=1000, named="") == {}


def test_a_controller_that_is_not_handed_on_is_none(tmp_path: Path) -> None:
    assert places(v2(tmp_path, above=""), user=1000, named="") == {}


def test_root_makes_none_where_it_was_not_told_to(tmp_path: Path) -> None:
    root = v1(tmp_path)
    assert places(root, user=0, named="") == {}
    assert places(root, user=0, named=str(root / "cg/memory/a")) == {"memory": root / "cg/memory/a"}


def test_a_folder_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    root = v1(tmp_path)
    monkeypatch.setattr(Path, "mkdir", refused)
    assert places(root, user=1000, named="") == {}


@pytest.mark.parametrize("what", ["", "nowhere", "cg/systemd", "proc"])
def test_a_name_of_something_else_is_bad_input(tmp_path: Path, what: str) -> None:
    root = v1(tmp_path)
    with pytest.raises(InputError, match=r"TIMETRIAL_CGROUP names .* no control group"):
        places(root, user=0, named=str(root / what))


@pytest.mark.parametrize(
    ("tree", "files"),
    [
        (v1, {"memory.limit_in_bytes": "8192", "cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}),
        (v2, {"memory.max": "8192", "cpu.max": "50000 100000", "pids.max": "7"}),
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, tree: object, files: dict[str, str]) -> None:
    assert callable(tree)
    root = tree(tmp_path)
    folder = root / ("cg/slice" if tree is v2 else "cg/memory/a")
    values = {"memory": 8192.0, "cpu": 0.5} | ({"pids": 7.0} if tree is v2 else {})
    (group,) = plan_groups(values, dict.fromkeys(values, folder))
    group.make()
    assert {file.name: file.read_text() for file in group.folder.iterdir()} == files
    assert {name: group.read_back(name) for name in values} == values
    for file in group.folder.iterdir():
        file.unlink()
    assert {group.read_back(name) for name in values} == {None}
    group.remove()
    assert not group.folder.exists()


def test_several_hierarchies_have_a_group_each(tmp_path: Path) -> None:
    groups = plan_groups({"memory": 1.0, "cpu": 1.0}, {"memory": tmp_path / "m", "cpu": tmp_path / "c"})
    assert [one.folder.parent for one in groups] == [tmp_path / "m", tmp_path / "c"]
    (both,) = plan_groups({"memory": 1.0, "cpu": 1.0}, {"memory": tmp_path, "cpu": tmp_path})
    assert set(both.controllers) == {"memory", "cpu"}


def test_who_is_in_it_and_what_it_counted(tmp_path: Path) -> None:
    group = Group(tmp_path / "cg/timetrial-1-1", {"memory": 1.0})
    root = write(
        tmp_path,
        {
            "proc/7/cgroup": "4:memory:/a/timetrial-1-1\n0::/\n",
            "proc/8/cgroup": "4:memory:/a\n0::/\n",
            "cg/timetrial-1-1/memory.oom_control": "under_oom 0\noom_kill 2\n",
            "cg/timetrial-1-1/memory.max_usage_in_bytes": "4096\n",
        },
    )
    assert [group.has(pid, root) for pid in (7, 8, 9)] == [True, False, None]
    assert (group.kills, group.peak_bytes) == (2, 4096)
    nothing = Group(tmp_path / "none", {"memory": 1.0})
    assert (nothing.kills, nothing.peak_bytes) == (0, None)


def test_groups_of_runs_that_are_gone_are_swept_up(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    gone, ours, others = (
        tmp_path / name for name in (f"timetrial-{ended.pid}-1", f"timetrial-{os.getpid()}-999", "job-1-1")
    )
    for folder in (gone, ours, others):
        folder.mkdir()
    (group,) = plan_groups({"pids": 5.0}, {"pids": tmp_path})
    group.make()
    assert [folder.exists() for folder in (gone, ours, others)] == [False, True, True]


@pytest.mark.parametrize(("controller", "value"), [("cpu", 0.5), ("pids", 20.0)])
def test_the_kernel_takes_and_gives_back(controller: str, value: float) -> None:
    place = group_place(controller)
    (group,) = plan_groups({controller: value}, {controller: place})
    group.make()
    try:
        assert group.read_back(controller) == value
        assert group.has(os.getpid()) is False
        enter = f"echo $$ > {group.folder}/cgroup.procs; exec sleep 1000"
        with subprocess.Popen(["sh", "-c", enter]) as inside:
            try:
                while not group.has(inside.pid):
                    assert inside.poll() is None
            finally:
                inside.kill()
    finally:
        group.remove()
    assert not group.folder.exists()
