"""Where the kernel lets tests make control groups, if anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from timetrial.caps.groups import places


def group_place(controller: str) -> Path:
    """A folder for groups of a controller (of version 1) in whose root this process is, so that nobody's
    limits are left for it. Skips the test where there is none."""
    own = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[2] == "cgroup" and controller in words[3].split(","):
            is_in_root = any(one.endswith(f":{controller}:/") for one in own)
            found = places(user=0, named=words[1]) if is_in_root and Path(words[1]).is_dir() else {}
            if controller in found:
                return found[controller]
    pytest.skip(f"no control group for {controller} can be made here")
