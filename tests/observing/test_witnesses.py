"""Who else had the CPUs, on fake trees of /proc and /sys: every culprit is named, nobody without cause."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from timetrial.control_groups import (
    Kills,
    Throttled,
    cpu_groups,
    out_of_memory_kills,
    quota_cpus,
    throttled,
)
from timetrial.observing.disturbances import causes_of, in_words
from timetrial.observing.frequency import heat_throttles, highest_frequency_hz, with_siblings
from timetrial.observing.programs import busiest, read_programs
from timetrial.observing.witnesses import Look, Machine, ProcessorTimes, Share, read_processors, witnesses_of
from timetrial.records.model import LaunchRecord

TICKS = os.sysconf("SC_CLK_TCK")
SECOND = 1_000_000_000


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# Processors ------------------------------------------------------------------------------------------


def look(
    time_s: float,
    idle_s: dict[int, float],
    *,
    stolen_s: float = 0.0,
    ours_s: float = 0.0,
    parent_s: float = 0.0,
    stopped: Throttled | None = None,
    heat: int | None = None,
) -> Look:
    """Idle seconds by processor; steal is the first one's."""
    lines = {cpu: ProcessorTimes(idle, stolen_s if cpu == 0 else 0.0) for cpu, idle in idle_s.items()}
    lines[-1] = ProcessorTimes(sum(idle_s.values()), stolen_s)
    return Look(
        time_ns=int(time_s * SECOND),
        processors=lines,
        ours_ns=int(ours_s * SECOND),
        parent_ns=int(parent_s * SECOND),
        throttled=stopped,
        heat_throttles=heat,
    )


def record(begin: Look, end: Look, share: Share, cores: set[int], **programs: float) -> LaunchRecord:
    return LaunchRecord(
        id="0", case="c", purpose="speed", seed=1, block=0, position=0, outcome="ok", started_at="",
        duration_s=1, witnesses=witnesses_of(begin, end, share, cores), others=programs,
    )  # fmt: skip


def one_second(cpu_s: float, wait_s: float = 0.0, runnable_s: float | None = None) -> Share:
    runnable = cpu_s + wait_s if runnable_s is None else runnable_s
    return Share(SECOND, int(cpu_s * SECOND), int(wait_s * SECOND), int(runnable * SECOND))


def words(begin: Look, end: Look, share: Share, cores: set[int], **programs: float) -> str:
    causes = causes_of(record(begin, end, share, cores, **programs))
    return in_words([causes]) if causes else ""


@pytest.mark.parametrize("cpus", [1, 2, 4, 16, 64, 256])
def test_a_hog_of_one_core_shows_on_any_machine(cpus: int) -> None:
    """The contender uses one CPU and what is left of it; the hog one whole CPU."""
    start = look(0, dict.fromkeys(range(cpus), 0.0))
    used = 1.0 if cpus > 1 else 0.5
    idle_s = max(0.0, cpus - 2.0) / cpus
    end = look(1, dict.fromkeys(range(cpus), idle_s), ours_s=used)
    said = words(start, end, one_second(used), set(range(cpus)), yes=0.99)
    amount = "1.0" if cpus > 1 else "0.5"
    assert said == f"another program (yes) used {amount} of the {cpus} CPU{'s' if cpus > 1 else ''}"


@pytest.mark.parametrize("cpus", [1, 2, 4, 16, 64, 256])
def test_the_housekeeping_of_an_idle_machine_does_not(cpus: int) -> None:
    """Half a percent of each CPU at most, and two ticks of rounding."""
    start = look(0, dict.fromkeys(range(cpus), 0.0))
    busy_s = min(0.005 * cpus, 0.4) + 0.02
    end = look(1, dict.fromkeys(range(cpus), (cpus - 0.9 - busy_s) / cpus), ours_s=0.9)
    assert words(start, end, one_second(0.9, 0.01), set(range(cpus))) == ""


def test_a_hog_elsewhere_is_no_matter() -> None:
    """The contender is bound to 0; the hog runs on 1, which shares no core with it; then on 0."""
    start = look(0, {0: 0.0, 1: 0.0})
    elsewhere = look(1, {0: 0.1, 1: 0.0}, ours_s=0.9)
    assert words(start, elsewhere, one_second(0.9), {0}) == ""
    here = look(1, {0: 0.0, 1: 0.5}, ours_s=0.5)
    assert words(start, here, one_second(0.5, 0.5), {0}, yes=0.5) == (
        "another program (yes) used 0.5 of the 1 CPU; its threads waited 50 % for a CPU"
    )


def test_ourselves_and_rivals_are_nobody_else() -> None:
    """The contender used 0.5 s, a rival 0.9 s, the parent and the supervisor 0.3 s of two CPUs."""
    start = look(0, {0: 0.0, 1: 0.0}, ours_s=5)
    end = look(1, {0: 0.2, 1: 0.1}, ours_s=6.7, parent_s=0.3)
    seen = witnesses_of(start, end, Share(SECOND // 2, SECOND // 2, 0, SECOND // 2), {0, 1})
    assert seen["others_cpus"] == pytest.approx(0.0, abs=1e-9)
    assert seen["parent_cpus"] == pytest.approx(0.3)
    assert seen["cpus_used"] == pytest.approx(1.0)  # of its own turns


def test_steal_is_of_the_cpus_used() -> None:
    """One thread on 64 CPUs loses 4 % of its one."""
    start = look(0, dict.fromkeys(range(64), 0.0))
    end = look(1, dict.fromkeys(range(64), 63.0 / 64), stolen_s=0.04, ours_s=0.96)
    assert words(start, end, one_second(0.96), set(range(64))) == "the hypervisor took 4 %"


def test_a_tick_of_steal_in_a_short_launch_is_rounding() -> None:
    start, end = look(0, {0: 0.0}), look(0.06, {0: 0.0}, stolen_s=0.01, ours_s=0.05)
    assert words(start, end, Share(60_000_000, 50_000_000, 0, 50_000_000), {0}) == ""


def test_throttling_is_named_and_its_waits_are_not_named_twice() -> None:
    start = look(0, {0: 0.0, 1: 0.0}, stopped=Throttled(3, SECOND))
    end = look(1, {0: 0.6, 1: 0.5}, ours_s=0.9, stopped=Throttled(5, SECOND + 120_000_000))
    assert words(start, end, one_second(0.9, 0.1), {0, 1}) == "throttled by a quota for 120 ms"


def test_waits_are_named_unless_its_own_threads_are_too_many() -> None:
    """Neighbors that cannot be seen (another container) show in the wait alone."""
    start, end = look(0, {0: 0.0, 1: 0.0}), look(1, {0: 0.1, 1: 0.0}, ours_s=1.9)
    assert words(start, end, one_second(1.9, 0.06, 2.0), {0, 1}) == "its threads waited 6 % for a CPU"
    assert words(start, end, one_second(1.9, 0.5, 3.0), {0, 1}) == ""


def test_heat() -> None:
    start, end = look(0, {0: 0.0}, heat=7), look(1, {0: 0.0}, ours_s=1.0, heat=9)
    assert words(start, end, one_second(1.0), {0}) == "the CPU slowed down from heat 2 times"


def test_no_time_no_witnesses() -> None:
    now = look(1, {0: 0.0})
    assert witnesses_of(now, now, one_second(1.0), {0}) == {}
    assert witnesses_of(look(0, {0: 0.0}), now, dataclasses.replace(one_second(1.0), wall_ns=0), {0}) == {}


def test_processors_are_read_from_the_kernel(tmp_path: Path) -> None:
    fake = write(
        tmp_path,
        {
            "proc/stat": "cpu  10 20 30 400 50 6 7 80 9 9\ncpu0 1 2 3 100 5 0 0 30 0 0\n"
            "cpu3 1 2 3 300 45 0 0 50 0 0\nintr 5 5\nctxt 99\n"
        },
    )
    assert read_processors(fake) == {
        -1: ProcessorTimes(450 / TICKS, 80 / TICKS),
        0: ProcessorTimes(105 / TICKS, 30 / TICKS),
        3: ProcessorTimes(345 / TICKS, 50 / TICKS),
    }


def test_this_machine_can_be_looked_at() -> None:
    cpus = os.sched_getaffinity(0)
    machine = Machine(os.getpid())
    begin, end = machine.look(cpus), machine.look(cpus)
    assert cpus <= end.processors.keys()
    assert end.ours_ns >= begin.ours_ns > 0
    assert machine.cores(cpus) >= cpus


# Control groups --------------------------------------------------------------------------------------

V2 = {
    "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/7/cgroup": "0::/a/b\n",
    "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/a/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 120000\n",
    "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
    "sys/fs/cgroup/a/b/cpu.stat": "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n",
}
V1 = {
    "proc/self/mounts": "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
    "proc/7/cgroup": "5:memory:/other\n4:cpu,cpuacct:/a\n0::/\n",
    "sys/fs/cgroup/unified/cgroup.procs": "",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/a/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 120000000\n",
}


@pytest.mark.parametrize(("files", "quota"), [(V2, 1.5), (V1, 0.5)])
def test_quotas_of_both_versions_and_of_groups_above(
    tmp_path: Path, files: dict[str, str], quota: float
) -> None:
    groups = cpu_groups(7, write(tmp_path, files))
    assert quota_cpus(groups) == quota
    assert throttled(groups) == Throttled(4, 120_000_000)
    assert Machine(7, tmp_path).quota_cpus == quota


def test_groups_that_a_container_cannot_see(tmp_path: Path) -> None:
    """The path is the host's, the mount is the container's own group: what can be seen is asked."""
    files = {
        "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        "proc/7/cgroup": "0::/docker/0123\n",
        "sys/fs/cgroup/cpu.max": "200000 100000\n",
    }
    assert quota_cpus(cpu_groups(7, write(tmp_path, files))) == 2.0


def test_no_quota_and_nobody_who_counts(tmp_path: Path) -> None:
    groups = cpu_groups(7, write(tmp_path, {"proc/self/mounts": "proc /proc proc rw 0 0\n"}))
    assert (groups, quota_cpus(groups), throttled(groups)) == ([], None, None)


def test_kills_for_memory(tmp_path: Path) -> None:
    files = {
        "proc/vmstat": "nr_free_pages 5\noom_kill 2\n",
        "proc/self/cgroup": "0::/a\n",
        "sys/fs/cgroup/a/memory.events": "low 0\noom 1\noom_kill 1\n",
    }
    before = out_of_memory_kills(write(tmp_path, files))
    assert before == Kills(machine=2, group=1)
    assert out_of_memory_kills(tmp_path / "nothing") == Kills()
    files["proc/vmstat"] = "oom_kill 3\n"
    assert out_of_memory_kills(write(tmp_path, files)).since(before) == Kills(machine=1)


def test_kills_of_version_1(tmp_path: Path) -> None:
    files = {
        "proc/vmstat": "oom_kill 2\n",
        "proc/self/cgroup": "4:memory:/a/b\n3:cpu:/\n0::/\n",
        "sys/fs/cgroup/memory/a/b/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    }
    assert out_of_memory_kills(write(tmp_path, files)) == Kills(machine=2, group=2)


# Programs --------------------------------------------------------------------------------------------


def program(pid: int, name: str, parent: int, cpu_s: float, cpu: int = 0, start: int = 5) -> dict[str, str]:
    ticks = int(cpu_s * TICKS)
    before = f"S {parent} 1 1 0 -1 0 0 0 0 0"  # fields 3 to 13
    between = f"{ticks} 0 0 0 20 0 1 0 {start}"  # utime stime cutime cstime priority nice threads 0 starttime
    rest = " ".join(["0"] * 16)  # vsize to exit_signal
    return {f"proc/{pid}/stat": f"{pid} ({name}) {before} {between} {rest} {cpu} 0 0\n"}


def test_programs_are_named_by_what_they_used_meanwhile(tmp_path: Path) -> None:
    before = write(
        tmp_path / "before",
        {
            **program(1, "init", 0, 900),
            **program(10, "us", 1, 5),
            **program(11, "contender", 10, 1),
            **program(20, "make) (x", 1, 2),
            **program(21, "yes", 1, 3, start=7),
            "proc/version": "Linux",
        },
    )
    after = write(
        tmp_path / "after",
        {
            **program(1, "init", 0, 900),
            **program(10, "us", 1, 8),
            **program(11, "contender", 10, 9),
            **program(12, "helper", 11, 4),
            **program(20, "make) (x", 1, 2.5),
            **program(21, "yes", 1, 0.25, start=9),  # another process with the same number
            **program(22, "yes", 20, 0.5),
        },
    )
    first, second = read_programs(before), read_programs(after)
    assert busiest(first, second, 10) == {"yes": 0.75, "make) (x": 0.5}


def test_programs_on_other_processors_are_not_named(tmp_path: Path) -> None:
    before = write(tmp_path / "a", {**program(5, "here", 1, 0, cpu=3), **program(6, "there", 1, 0, cpu=4)})
    after = write(tmp_path / "b", {**program(5, "here", 1, 1, cpu=4), **program(6, "there", 1, 9, cpu=4)})
    assert busiest(read_programs(before), read_programs(after), 99, {3}) == {"here": 1.0}


def test_small_shares_are_not_named() -> None:
    start, end = look(0, {0: 0.0, 1: 0.0}), look(1, {0: 0.0, 1: 0.0}, ours_s=1.0)
    said = words(start, end, one_second(1.0), {0, 1}, make=0.5, cc=0.3, init=0.1)
    assert said == "other programs (make, cc) used 1.0 of the 2 CPUs"
    assert words(start, end, one_second(1.0), {0, 1}) == "other programs used 1.0 of the 2 CPUs"


# Topology and heat -----------------------------------------------------------------------------------


def test_cores_heat_and_frequency(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu/cpu"
    fake = write(
        tmp_path,
        {
            f"{cpu}0/topology/thread_siblings_list": "0,4\n",
            f"{cpu}4/topology/thread_siblings_list": "0,4\n",
            f"{cpu}0/cpufreq/scaling_cur_freq": "1200000\n",
            f"{cpu}4/cpufreq/scaling_cur_freq": "3500000\n",
            f"{cpu}0/thermal_throttle/core_throttle_count": "3\n",
            f"{cpu}4/thermal_throttle/core_throttle_count": "4\n",
        },
    )
    assert with_siblings({0, 1}, fake) == {0, 1, 4}
    assert heat_throttles({0, 4}, fake) == 7
    assert heat_throttles({1}, fake) is None
    assert highest_frequency_hz({0, 4}, fake) == 3.5e9
    assert highest_frequency_hz({1}, fake) is None
