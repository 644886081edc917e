"""Counters and energy of the steady part: what is counted, and what is said where a machine says no."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.core.counters import Counters, CounterSum, EnergyZone, read_energy
from timetrial.observing.counted import (
    ENERGY,
    TOGETHER,
    Counting,
    Tally,
    counted_here,
    used_uj,
    why_no_energy,
    why_not_counted,
)
from timetrial.records.meaning import COUNTER_WORDS
from timetrial.records.model import Counter

S = 1_000_000_000


def add_zone(root: Path, zone: str, name: str, energy_uj: int, range_uj: int = 262_143_328_850) -> None:
    folder = root / "sys/class/powercap" / zone
    folder.mkdir(parents=True, exist_ok=True)
    for file, value in {"name": name, "energy_uj": energy_uj, "max_energy_range_uj": range_uj}.items():
        (folder / file).write_text(f"{value}\n")


class Fake(Counters):
    """Counts what it is told, and says no with an errno to the others."""

    def __init__(self, *sums: CounterSum):
        self.sums = sums
        self.closed = False

    def read(self) -> tuple[CounterSum, ...]:
        return self.sums

    def close(self) -> None:
        self.closed = True


def event(
    name: str, count: int = 0, enabled: int = S, running: int | None = None, error: int = 0
) -> CounterSum:
    return CounterSum(name, True, error, count, enabled, enabled if running is None else running)


def counting(root: Path, *, is_alone: bool = True, paranoid: int | None = None) -> Counting:
    if paranoid is not None:
        (root / "proc/sys/kernel").mkdir(parents=True)
        (root / "proc/sys/kernel/perf_event_paranoid").write_text(f"{paranoid}\n")
    return Counting([os.getpid()], is_alone=is_alone, root=root, count=lambda tids: Fake())


def tally(at_s: float, *sums: CounterSum, zones: Sequence[EnergyZone] = ()) -> Tally:
    return Tally(int(at_s * S), sums, tuple(zones))


def named(counters: Sequence[Counter], name: str) -> Counter:
    return next(one for one in counters if one.name == name)


def test_a_count_is_of_a_step_and_without_what_lay_between(tmp_path: Path) -> None:
    stretches = [
        (tally(0, event("instructions", 100)), tally(1, event("instructions", 300, 2 * S))),
        (tally(2, event("instructions", 900, 3 * S)), tally(3, event("instructions", 1000, 4 * S))),
    ]
    [found, *_] = counting(tmp_path).end(stretches, 10)
    assert (found.per_step, found.running_share, found.reason) == (30.0, 1.0, None)


def test_a_counter_that_took_turns_is_scaled_and_says_so(tmp_path: Path) -> None:
    pair = tally(0, event("cycles", 0, 0, 0)), tally(1, event("cycles", 100, 4 * S, S))
    [found, *_] = counting(tmp_path).end([pair], 1)
    assert (found.per_step, found.running_share) == (400.0, 0.25)


def test_a_counter_that_never_ran_is_not_0(tmp_path: Path) -> None:
    pair = tally(0, event("cycles", 0, 0, 0)), tally(1, event("cycles", 0, S, 0))
    [found, *_] = counting(tmp_path).end([pair], 1)
    assert found.per_step is None
    assert "never ran" in (found.reason or "")


def test_who_says_no_is_named_with_the_remedy(tmp_path: Path) -> None:
    refused = event("instructions", error=errno.EACCES)
    [found, *_] = counting(tmp_path, paranoid=4).end([(tally(0, refused), tally(1, refused))], 5)
    assert found.per_step is None
    assert found.reason == (
        "EACCES: kernel.perf_event_paranoid is 4: sudo sysctl kernel.perf_event_paranoid=2, or the "
        "capability CAP_PERFMON"
    )


@pytest.mark.parametrize(
    ("name", "error", "paranoid", "words"),
    [
        ("instructions", errno.ENOENT, 2, "ENOENT: .*a virtual PMU"),
        ("instructions", errno.EOPNOTSUPP, 2, "a virtual PMU"),
        ("instructions", errno.EPERM, 2, "EPERM: .*a filter refuses it.*--cap-add=PERFMON"),
        ("instructions", errno.EACCES, None, "a filter refuses it"),
        ("migrations", errno.EACCES, 2, "is 2: sudo sysctl kernel.perf_event_paranoid=1"),
        ("page_faults", errno.ENOSYS, None, "ENOSYS: .*CONFIG_PERF_EVENTS"),
        ("page_faults", errno.EMFILE, 2, r"EMFILE: .*ulimit -n"),
        ("page_faults", errno.ESRCH, 2, "had ended"),
        ("page_faults", errno.EINVAL, 2, "EINVAL: Invalid argument"),
    ],
)
def test_each_errno_has_its_words(name: str, error: int, paranoid: int | None, words: str) -> None:
    assert re.search(words, why_not_counted(event(name, error=error), paranoid))


def test_energy_is_of_all_packages_and_of_a_step(tmp_path: Path) -> None:
    add_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    add_zone(tmp_path, "intel-rapl:1", "package-1", 262_143_328_850 - 1_000_000)
    add_zone(tmp_path, "intel-rapl:0:0", "dram", 5_000_000)
    add_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1_000_000)
    one = counting(tmp_path)
    before = one.tally()
    add_zone(tmp_path, "intel-rapl:0", "package-0", 7_000_000)
    add_zone(tmp_path, "intel-rapl:1", "package-1", 1_000_000)  # it has begun anew
    add_zone(tmp_path, "intel-rapl:0:0", "dram", 6_000_000)
    found = one.end([(before, one.tally())], 4)
    assert named(found, "package_energy_j").per_step == pytest.approx((6 + 2) / 4)
    assert named(found, "memory_energy_j").per_step == pytest.approx(1 / 4)


def test_energy_is_no_number_where_it_is_not_known(tmp_path: Path) -> None:
    def end(one: Counting, seconds: float = 1.0) -> Counter:
        before, after = one.tally(), one.tally()
        after = Tally(before.time_ns + int(seconds * S), after.sums, after.zones)
        return named(one.end([(before, after)], 1), "package_energy_j")

    assert "ENOENT: this machine shows no energy counters" in str(end(counting(tmp_path)).reason)
    assert end(counting(tmp_path, is_alone=False)).reason == TOGETHER
    add_zone(tmp_path, "intel-rapl:0:0", "dram", 1)
    assert end(counting(tmp_path)).reason == "no zone of RAPL is called package"
    add_zone(tmp_path, "intel-rapl:0", "package-0", 1)
    assert end(counting(tmp_path)).per_step == 0.0
    assert "begun anew more than once in 300 s" in str(end(counting(tmp_path), 300.0).reason)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
    assert "ENOENT" in str(end(counting(tmp_path)).reason)


def test_what_only_root_may_read_says_how_others_may() -> None:
    assert "EACCES: only root may read it" in why_no_energy(errno.EACCES)
    assert "chmod a+r" in why_no_energy(errno.EPERM)
    assert "EIO: Input/output error" in why_no_energy(errno.EIO)


def test_a_counter_begins_anew_behind_its_range() -> None:
    before, after = (EnergyZone("intel-rapl:0", "package-0", 0, value, 100) for value in (90, 15))
    assert used_uj(before, after) == 25
    assert used_uj(after, before) == 75


def test_a_tree_without_zones_is_an_error_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_energy(tmp_path)


def test_what_this_machine_allows_is_counted_and_the_rest_says_why() -> None:
    found = counted_here()
    assert [one.name for one in found] == list(COUNTER_WORDS)
    assert set(ENERGY) < {one.name for one in found}
    for one in found:
        assert (one.per_step is None) == (one.reason is not None), one


def test_the_kernels_counters_agree_with_its_other_witnesses() -> None:
    """Page faults of our own main thread, over memory that is touched for the first time."""
    counters = Counters([os.getpid()])
    faults = named_sum(counters, "page_faults")
    if faults.error:
        counters.close()
        pytest.skip(f"no perf events here: {why_not_counted(faults, None)}")
    room: Any = np.empty(64 << 20, np.uint8)
    room[:: os.sysconf("SC_PAGESIZE")] = 1
    grown = named_sum(counters, "page_faults").count - faults.count
    counters.close()
    assert grown > 0


def named_sum(counters: Counters, name: str) -> CounterSum:
    return next(one for one in counters.read() if one.name == name)
