"""The noise check on fake trees of /proc and /sys: what is there is named, what is not says why, and only
what needs it comes with advice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from timetrial.control.cpus import allowed_cpus
from timetrial.core.cpu import read_evenly
from timetrial.noise import NoiseFinding, check_noise
from timetrial.noise.contention import Level, array_sizes, level_of, read_levels

TICKS = os.sysconf("SC_CLK_TCK")
CPU = "sys/devices/system/cpu"
MIB = 2**20
QUIET = {
    "proc/stat": "",
    "proc/thread-self/schedstat": "1000 500 3\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/self/cgroup": "0::/a\n",
    "sys/fs/cgroup/a/cpu.max": "max 100000\n",
    "sys/fs/cgroup/a/cpu.stat": "nr_throttled 0\nthrottled_usec 0\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def stat(stolen_s: float) -> str:
    """/proc/stat: each processor was stolen for so long."""
    lines = (f"cpu{cpu} 0 0 0 0 0 0 0 {int(stolen_s * TICKS)} 0 0" for cpu in sorted(allowed_cpus()))
    return "\n".join(["cpu 0 0 0 0 0 0 0 0 0 0", *lines, "intr 1", ""])


def check(
    root: Path, after: dict[str, str] | None = None, levels: Sequence[Level] = ()
) -> dict[str, NoiseFinding]:
    """`after`: files that change while caches and memory are read."""

    def measure(seconds: float) -> Sequence[Level]:
        write(root, after or {})
        return levels

    return {one.name: one for one in check_noise(0.1, root, measure)}


def siblings(text: str) -> dict[str, str]:
    return {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": text for cpu in allowed_cpus()}


def test_a_quiet_machine_needs_no_advice(tmp_path: Path) -> None:
    own = {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu}\n" for cpu in allowed_cpus()}
    level = Level("last cache", 32 * MIB, True, 20.0, 0.05, 0.0)
    found = check(write(tmp_path, {**QUIET, **own, "proc/stat": stat(1.0)}), levels=[level])
    assert {name: one.seen for name, one in found.items()} == {
        "time stolen": "0.0 % of the CPUs' time",
        "wait for a CPU": "0.0 % of the time",
        "reads of the last cache, one by one": "20.0 ns a line, spread 5 %, 0 % of the time slow",
        "reads of memory": None,
        "frequency governor": "performance",
        "clock frequency": None,
        "CPU quota": "none, stood still 0 ms in this check",
        "address randomization": "on",
        "huge pages": "madvise",
        "CPUs that share a core": "none",
    }
    assert [one.name for one in found.values() if one.advice] == []


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    found = check(tmp_path)
    assert len(found) == 9
    for one in found.values():
        assert one.seen is None, one
        assert one.means
        assert one.advice is None, one


def test_steal_and_waits_of_this_check_are_named(tmp_path: Path) -> None:
    root = write(tmp_path, {**QUIET, "proc/stat": stat(100.0)})
    found = check(root, {"proc/stat": stat(101.0), "proc/thread-self/schedstat": f"1000 {10**15} 3\n"})
    for name in ("time stolen", "wait for a CPU"):
        assert found[name].advice is not None
        assert not (found[name].seen or "").startswith("0.0 %")


def test_slow_reads_have_advice() -> None:
    level = level_of("memory", 128 * MIB, False, [10.0] * 80 + [14.0] * 20)
    assert (level.fast_ns, level.spread, level.slow_share) == (10.0, pytest.approx(0.4), 0.2)
    assert level_of("memory", 128 * MIB, False, [10.0] * 50).slow_share == 0
    findings = check_noise(0.1, Path("/nowhere"), lambda _: [level])
    (found,) = (one for one in findings if "reads of" in one.name)
    assert found.name == "reads of memory, in a row"
    assert found.seen == "10.0 ns a line, spread 40 %, 20 % of the time slow"
    assert "128 MiB" in found.means
    assert found.advice is not None


@pytest.mark.parametrize(
    ("files", "name", "seen", "advice"),
    [
        (
            {f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave"},
            "frequency governor",
            "powersave",
            "cpupower",
        ),
        ({"sys/fs/cgroup/a/cpu.max": "150000 100000"}, "CPU quota", "1.5 CPUs", "fewer threads"),
        ({"proc/sys/kernel/randomize_va_space": "0"}, "address randomization", "off", "randomize_va_space=2"),
        (siblings("0,64\n"), "CPUs that share a core", "0+64", "affinity="),
    ],
)
def test_what_makes_timings_restless_comes_with_advice(
    tmp_path: Path, files: dict[str, str], name: str, seen: str, advice: str
) -> None:
    found = check(write(tmp_path, {**QUIET, **files}))
    assert (found[name].seen or "").startswith(seen)
    assert advice in (found[name].advice or "")


def test_a_quota_that_was_used_up_is_told(tmp_path: Path) -> None:
    """Also one of a group that cannot be seen from here: it has stopped us."""
    after = {"sys/fs/cgroup/a/cpu.stat": "nr_throttled 3\nthrottled_usec 40000\n"}
    found = check(write(tmp_path, QUIET), after)["CPU quota"]
    assert found.seen == "none of its own, stood still 40 ms in this check"
    assert found.advice is not None


def test_arrays_are_of_the_caches_and_stay_small() -> None:
    assert array_sizes({1: 2**15, 2: MIB, 3: 32 * MIB}) == {
        "second-level cache": MIB // 2, "last cache": 16 * MIB, "memory": 64 * MIB,
    }  # fmt: skip
    large = array_sizes({2: 2 * MIB, 3: 512 * MIB})
    assert large == {"second-level cache": MIB, "last cache": 32 * MIB}, (
        "twice that cache is too much to read"
    )
    assert array_sizes({2: MIB}) == {"second-level cache": MIB // 2, "memory": 64 * MIB}
    assert array_sizes({}) == {"memory": 64 * MIB}


def test_this_machine_can_be_read() -> None:
    found = read_levels(0.05)
    assert found
    for level in found:
        assert level.fast_ns > 0
        assert 0 <= level.slow_share <= 1
    (chased, _) = read_evenly([4096], 0.01)
    assert chased.is_chase
    with pytest.raises(ValueError, match="at least 4096"):
        read_evenly([1], 0.01)
