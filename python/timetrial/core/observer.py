"""What the kernel says about a process and all below it: CPU time, memory, threads, mapped libraries."""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.core import _core
from timetrial.errors import InputError


@dataclass(frozen=True)
class Thread:
    """A thread that was alive when it was looked at."""

    pid: int
    tid: int
    name: str
    cpu_ns: int  # on a CPU
    wait_ns: int  # ready to run, while others had the CPUs
    allowed_cpus: str  # "0-1+4"
    nice: int
    policy: int  # os.SCHED_OTHER, os.SCHED_FIFO, ...
    voluntary_switches: int
    involuntary_switches: int


@dataclass(frozen=True)
class Observation:
    """Sums over the tree. Memory that its processes share is counted in each of them, unless it is asked for
    once."""

    time_ns: int  # on the clock of clock.now_ns(), before the first reading
    cpu_ns: int  # ended threads included, and ended children: reaped ones to the kernel's tick
    rss_bytes: int
    peak_rss_bytes: int  # since the start or reset_peak()
    anonymous_bytes: int  # private and backed by no file, swapped out or not
    file_rss_bytes: int  # resident pages of mapped files
    shared_rss_bytes: int  # resident shared memory
    minor_faults: int
    major_faults: int
    processes: int
    stopped: bool  # the root, by SIGSTOP or a tracer
    threads: tuple[Thread, ...]


@dataclass(frozen=True)
class MappedLibrary:
    """A mapped file that computes, schedules or allocates."""

    path: str
    kind: str  # blas, openmp, onednn, framework, allocator, backend


def float_mode_of(tid: int) -> str:
    """How a thread of another process treats subnormal numbers, by its MXCSR: as zero "on" or "off", or only
    in its "results" or "operands". It is stopped for some microseconds: nothing of it may be timed.

    Raises ProcessLookupError for a thread that is gone, PermissionError where the kernel does not let us.
    """
    return _core.float_mode_of(tid)


class Observer:
    """Watches a process tree through /proc. It reads when asked and costs nothing in between.

    `reaper`: a supervisor that inherits what the root leaves behind; all below it is the root's tree, it is
    not itself. Every method raises ProcessLookupError when the root has ended.
    """

    def __init__(self, pid: int, reaper: int | None = None):
        if pid < 1:
            raise InputError(f"pid = {pid}; expected the number of a process, from 1")
        self.pid = pid
        self._native = _core.Observer(pid, reaper or 0)

    def read(self, *, once: bool = False) -> Observation:
        """Everything, now. `once`: a page that several processes of the tree have counts once, by shares
        (13 ms for each GiB of such a tree: only where nothing is timed)."""
        seen = self._native.read(once)
        threads = tuple(
            Thread(
                pid=thread.pid,
                tid=thread.tid,
                name=thread.name,
                cpu_ns=thread.cpu_ns,
                wait_ns=thread.wait_ns,
                allowed_cpus=thread.allowed_cpus,
                nice=thread.nice,
                policy=thread.policy,
                voluntary_switches=thread.voluntary_switches,
                involuntary_switches=thread.involuntary_switches,
            )
            for thread in seen.threads
        )
        return Observation(
            time_ns=seen.time_ns,
            cpu_ns=seen.cpu_ns,
            rss_bytes=seen.rss_bytes,
            peak_rss_bytes=seen.peak_rss_bytes,
            anonymous_bytes=seen.anonymous_bytes,
            file_rss_bytes=seen.file_rss_bytes,
            shared_rss_bytes=seen.shared_rss_bytes,
            minor_faults=seen.minor_faults,
            major_faults=seen.major_faults,
            processes=seen.processes,
            stopped=seen.stopped,
            threads=threads,
        )

    def migrations(self) -> int | None:
        """How often its living threads have gone on on another processor; None: the kernel does not tell."""
        return self._native.migrations()

    def reset_peak(self) -> None:
        """From here on the peak of each process counts anew, from what it holds now."""
        self._native.reset_peak()

    def libraries(self) -> list[MappedLibrary]:
        """The mapped libraries of interest, each path once."""
        return [MappedLibrary(path, kind) for path, kind in self._native.libraries()]


def tree_cpu_ns(pid: int) -> int:
    """CPU time of a process and all below it, what has ended included; 0 if it is gone."""
    return _core.tree_cpu_ns(pid)
