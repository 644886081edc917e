"""Observer: known truths about other processes, as seen from outside."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from timetrial.core.cpu import (
    cache_bytes,
    cpu_flags,
    measure_bandwidth,
    measure_cache_bandwidth,
    measure_memory_bandwidth,
    measure_peak_flops,
)
from timetrial.core.observer import Observer, tree_cpu_ns
from timetrial.errors import InputError
from timetrial.observing.held import anonymous_peak

MEBIBYTE = 1 << 20

# Obeys words on stdin and answers each with a line.
ACTOR = """
import mmap, os, subprocess, sys, threading, time
kept = []
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(1000))
for line in sys.stdin:
    word, number = line.split()
    if word == "touch":
        room = mmap.mmap(-1, int(number) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(room), 4096): room[at] = 1
        room.close()
    if word in ("hold", "share"):
        flags = mmap.MAP_ANONYMOUS | (mmap.MAP_PRIVATE if word == "hold" else mmap.MAP_SHARED)
        kept.append(mmap.mmap(-1, int(number) << 20, flags=flags))
        for at in range(0, len(kept[-1]), 4096): kept[-1][at] = 1
    if word in ("map", "copy"):
        file = open("data", "rb")
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        kept.append(bytearray(mapped) if word == "copy" else mapped)
        sum(kept[-1][at] for at in range(0, len(kept[-1]), 4096))
    if word == "burn":
        before = time.process_time()
        threads = [threading.Thread(target=burn, args=[0.2]) for _ in range(int(number))]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(time.process_time() - before, flush=True)
        continue
    if word == "fork":  # a child that works and ends; nobody asks for it
        ended = os.fork()
        if ended == 0:
            burn(0.2)
            os._exit(0)
        os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    if word == "split" and os.fork() == 0:
        time.sleep(1000)
    if word == "reap":
        os.waitpid(ended, 0)
    if word == "child":
        kept.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]))
    if word == "bind":
        os.sched_setaffinity(0, {int(number)})
    print("done", flush=True)
"""


class Actor:
    def __init__(self, process: subprocess.Popen[str]):
        self._process = process
        self.pid = process.pid

    def act(self, word: str, number: int) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word} {number}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def actor(folder: Path | None = None) -> Iterator[Actor]:
    with subprocess.Popen(
        [sys.executable, "-c", ACTOR],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            acting = Actor(process)
            acting.act("start", 0)
            yield acting
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("threads", [1, 3])
def test_cpu_time_of_threads_that_have_ended(threads: int) -> None:
    with actor() as other:
        observer = Observer(other.pid)
        before = observer.read()
        own_count_s = float(other.act("burn", threads))
        after = observer.read()
    seen_s = (after.cpu_ns - before.cpu_ns) / 1e9
    assert own_count_s >= 0.2 * threads
    assert seen_s == pytest.approx(own_count_s, rel=0.03, abs=0.005)


def test_cpu_time_of_children_that_have_ended() -> None:
    """Before their parent asks for them, and after."""
    with actor() as other:
        observer = Observer(other.pid)
        before = observer.read()
        other.act("fork", 1)
        unreaped = observer.read()
        other.act("reap", 1)
        reaped = observer.read()
        whole = tree_cpu_ns(other.pid)
    assert unreaped.processes == reaped.processes == 1
    assert unreaped.cpu_ns - before.cpu_ns >= 195e6
    # From here on the kernel tells it in ticks of 10 ms, of user and of system time.
    assert abs(reaped.cpu_ns - unreaped.cpu_ns) <= 40e6
    assert whole >= reaped.cpu_ns


def test_cpu_time_of_nobody() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert tree_cpu_ns(process.pid) == 0
    assert tree_cpu_ns(os.getpid()) > 0


def test_priority_is_the_kernels_word() -> None:
    with actor() as other:
        os.setpriority(os.PRIO_PROCESS, other.pid, 19)
        (thread,) = Observer(other.pid).read().threads
    assert (thread.nice, thread.policy) == (19, os.sched_getscheduler(0))


def test_private_memory_and_what_is_shared_are_told_apart() -> None:
    with actor() as other:
        observer = Observer(other.pid)
        before = observer.read()
        other.act("hold", 24)
        other.act("share", 40)
        after = observer.read()
        other.act("touch", 256)
        freed = observer.read()
    assert after.anonymous_bytes - before.anonymous_bytes == pytest.approx(24 * MEBIBYTE, abs=2 * MEBIBYTE)
    assert after.shared_rss_bytes - before.shared_rss_bytes == pytest.approx(40 * MEBIBYTE, abs=2 * MEBIBYTE)
    assert anonymous_peak([(after, freed)], 0) - after.anonymous_bytes == pytest.approx(
        256 * MEBIBYTE, abs=2 * MEBIBYTE
    )


def test_who_maps_the_data_and_who_copies_it_differ_by_the_copy(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(48 * MEBIBYTE))
    held = {}
    for word in ("map", "copy"):
        with actor(tmp_path) as other:
            before = Observer(other.pid).read()
            other.act(word, 0)
            held[word] = Observer(other.pid).read().anonymous_bytes - before.anonymous_bytes
    assert held["map"] == pytest.approx(0, abs=2 * MEBIBYTE)
    assert held["copy"] - held["map"] == pytest.approx(48 * MEBIBYTE, abs=2 * MEBIBYTE)


def test_what_a_fork_leaves_to_both_counts_once_where_it_is_asked() -> None:
    with actor() as other:
        other.act("hold", 64)
        observer = Observer(other.pid)
        alone = observer.read(once=True)
        other.act("split", 0)
        together, summed = observer.read(once=True), observer.read()
    assert together.processes == 2
    assert together.anonymous_bytes == pytest.approx(alone.anonymous_bytes, abs=8 * MEBIBYTE)
    assert summed.anonymous_bytes >= alone.anonymous_bytes + 60 * MEBIBYTE


def test_peak_is_seen_after_it_is_over_and_forgotten_on_reset() -> None:
    with actor() as other:
        observer = Observer(other.pid)
        before = observer.read()
        other.act("touch", 256)
        after = observer.read()
        assert after.peak_rss_bytes - before.peak_rss_bytes == pytest.approx(256 * MEBIBYTE, abs=2 * MEBIBYTE)
        assert after.rss_bytes - before.rss_bytes < 2 * MEBIBYTE
        assert after.minor_faults - before.minor_faults >= 256
        observer.reset_peak()
        assert observer.read().peak_rss_bytes - before.peak_rss_bytes < 2 * MEBIBYTE


def test_pages_of_a_mapped_file_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"1" * (64 * MEBIBYTE))
    observer = Observer(os.getpid())
    before = observer.read()
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[place] for place in range(0, len(mapped), 4096)) > 0
        after = observer.read()
    grown = after.file_rss_bytes - before.file_rss_bytes
    assert grown == pytest.approx(64 * MEBIBYTE, abs=2 * MEBIBYTE)
    assert after.rss_bytes - before.rss_bytes >= grown - 2 * MEBIBYTE


def test_child_of_a_large_parent_does_not_inherit_its_peak() -> None:
    room = bytearray(256 * MEBIBYTE)
    room[::4096] = b"\1" * len(room[::4096])
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            assert Observer(os.getpid()).read().rss_bytes > 256 * MEBIBYTE
            assert Observer(process.pid).read().peak_rss_bytes < 16 * MEBIBYTE
        finally:
            process.kill()


def test_children_are_part_of_the_tree() -> None:
    with actor() as other:
        observer = Observer(other.pid)
        alone = observer.read()
        other.act("child", 1)
        both = observer.read()
        assert (alone.processes, both.processes) == (1, 2)
        assert {thread.pid for thread in both.threads} > {other.pid}
        assert both.rss_bytes > alone.rss_bytes


def test_affinity_is_the_kernels_word() -> None:
    cpu = max(os.sched_getaffinity(0))
    with actor() as other:
        other.act("bind", cpu)
        (thread,) = Observer(other.pid).read().threads
    assert thread.allowed_cpus == str(cpu)
    assert thread.tid == other.pid


def test_stopped_process_is_told_from_a_sleeping_one() -> None:
    with actor() as other:
        observer = Observer(other.pid)
        assert not observer.read().stopped
        os.kill(other.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED)
        assert observer.read().stopped


def test_process_that_has_ended() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    observer = Observer(process.pid)
    for look in (observer.read, observer.reset_peak, observer.libraries):
        with pytest.raises(ProcessLookupError, match=str(process.pid)):
            look()


def test_impossible_pid() -> None:
    with pytest.raises(InputError, match="pid = 0"):
        Observer(0)


def test_libraries_of_interest_are_found_by_name() -> None:

    kinds = {library.kind for library in Observer(os.getpid()).libraries()}
    assert "blas" in kinds
    for library in Observer(os.getpid()).libraries():
        assert os.path.isfile(library.path)


def test_machine_peak() -> None:
    peak = measure_peak_flops(threads=1, seconds=0.05)
    assert peak.flops_per_s > 1e8
    needed = {"sse2": "sse2", "avx2": "avx2", "avx512": "avx512vl"}
    assert needed[peak.isa] in cpu_flags(), "which is the fastest, only the machine knows"


@pytest.mark.parametrize(("threads", "seconds"), [(0, 0.1), (-1, 0.1), (1, 0.0), (1, float("nan"))])
def test_machine_peak_refuses_nonsense(threads: int, seconds: float) -> None:
    with pytest.raises(InputError):
        measure_peak_flops(threads, seconds)


def test_machine_bandwidths() -> None:
    memory = measure_memory_bandwidth(threads=1, seconds=0.05)
    cache = measure_cache_bandwidth(threads=2, seconds=0.05)
    assert memory.bytes_per_s > 1e8
    assert cache.bytes_per_s > 1e8
    assert (memory.threads, cache.threads) == (1, 2)
    assert memory.bytes > cache.bytes
    assert cache.bytes <= 2 * cache_bytes().get(2, 2**19) / 2, "half of each thread's second cache"


@pytest.mark.parametrize(("threads", "seconds", "size"), [(0, 0.1, 2**20), (1, 0.0, 2**20), (2, 0.1, 8191)])
def test_machine_bandwidth_refuses_nonsense(threads: int, seconds: float, size: int) -> None:
    with pytest.raises(InputError):
        measure_bandwidth(threads, seconds, size)


def test_caches_are_larger_the_farther_away() -> None:
    sizes = [size for _, size in sorted(cache_bytes().items())]
    assert sizes == sorted(sizes)
