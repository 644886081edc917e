"""What the processor can do: its flags; its f32 peak and its bandwidths, as measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from timetrial.core import _core
from timetrial.proc import read_proc


@dataclass(frozen=True)
class Peak:
    """Multiply-adds in registers, of all threads together; one counts as two operations."""

    isa: str  # the fastest of avx512, avx2, sse2 on this machine
    threads: int
    flops_per_s: float


@cache
def cpu_flags() -> frozenset[str]:
    """The flags of the first processor, in the words of /proc/cpuinfo: "avx2", "avx512f" ..."""
    for line in read_proc("cpuinfo").splitlines():
        name, _, words = line.partition(":")
        if name.strip() == "flags":
            return frozenset(words.split())
    return frozenset()


def measure_peak_flops(threads: int = 1, seconds: float = 0.3) -> Peak:
    """Best of several short windows, of each ISA that the CPU has in turn, n threads at once, pinned nowhere.
    Nothing else should run meanwhile."""
    peak = _core.measure_peak_flops(threads, seconds)
    return Peak(isa=peak.isa, threads=peak.threads, flops_per_s=peak.flops_per_s)


@dataclass(frozen=True)
class Bandwidth:
    """What memory or a cache gives and takes, of all threads together: two arrays read, a third written."""

    threads: int
    bytes: int  # of the arrays: more than the last cache holds, and it is the memory
    bytes_per_s: float
    is_streaming: bool  # whether stores that pass the caches by were faster


LEAST_ARRAYS = 64 * 2**20  # where the machine does not say how large its caches are


@cache
def cache_bytes() -> dict[int, int]:
    """The size of the first processor's data caches, by level; empty where the kernel does not say."""
    found = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = (
                (folder / name).read_text(encoding="ascii").strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind in ("Data", "Unified") and size.endswith("K"):
            found[int(level)] = int(size[:-1]) * 1024
    return found


def measure_bandwidth(threads: int, seconds: float, array_bytes: int) -> Bandwidth:
    """Over arrays of so many bytes, shared out among n threads, pinned nowhere; best of several windows.
    Nothing else should run meanwhile."""
    found = _core.measure_bandwidth(threads, seconds, array_bytes)
    return Bandwidth(found.threads, found.bytes, found.bytes_per_s, found.is_streaming)


def measure_memory_bandwidth(threads: int = 1, seconds: float = 0.5) -> Bandwidth:
    """Over twice as much as the last cache holds, and at most half of the free memory."""
    last = max(cache_bytes().values(), default=0)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return measure_bandwidth(threads, seconds, max(LEAST_ARRAYS, min(2 * last, free // 2)))


def measure_cache_bandwidth(threads: int = 1, seconds: float = 0.3) -> Bandwidth:
    """Over half of what each processor's second cache holds."""
    second = cache_bytes().get(2, 2**19)
    return measure_bandwidth(threads, seconds, threads * second // 2)


@dataclass(frozen=True)
class Reads:
    """How long reads of an array's cache lines took, window by window."""

    bytes: int
    is_chase: bool  # each line says where the next one is; otherwise one behind the other
    ns_per_line: list[float]  # in CPU time: waits for a CPU do not count


def read_evenly(sizes: list[int], seconds: float) -> list[Reads]:
    """Arrays of so many bytes, in turns, each by a chase and in a row, in windows of a few milliseconds."""
    found = _core.read_evenly(sizes, seconds)
    return [Reads(one.bytes, one.is_chase, one.ns_per_line) for one in found]


FLUSHED = 3  # subnormal results and operands count as zero; 0: neither does


def float_mode() -> int:
    """How the calling thread treats subnormal numbers: 0, FLUSHED, or half of it (1 results, 2 operands)."""
    return _core.float_mode()


def set_float_mode(mode: int) -> None:
    """Of the calling thread; threads that it starts inherit it."""
    _core.set_float_mode(mode)


def openblas_core_problem(core: str) -> str | None:
    """Why this CPU cannot run the kernels of a core type of OpenBLAS, in words; None: it can."""
    return _core.openblas_core_problem(core) or None


def openblas_core_missed(core: str) -> str | None:
    """The instructions of this CPU that kernels of this core type leave unused ("AVX-512"); None: none."""
    return _core.openblas_core_missed(core) or None
