"""What the processor can do: its flags, and its f32 peak as measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from timetrial.core import _core


@dataclass(frozen=True)
class Peak:
    """Multiply-adds in registers, of all threads together; one counts as two operations."""

    isa: str  # the fastest of avx512, avx2, sse2 on this machine
    threads: int
    flops_per_s: float


@cache
def cpu_flags() -> frozenset[str]:
    """The flags of the first processor, in the words of /proc/cpuinfo: "avx2", "avx512f" ..."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, words = line.partition(":")
        if name.strip() == "flags":
            return frozenset(words.split())
    return frozenset()


def measure_peak_flops(threads: int = 1, seconds: float = 0.3) -> Peak:
    """Best of several short windows, of each ISA that the CPU has in turn, n threads at once, pinned nowhere.
    Nothing else should run meanwhile."""
    peak = _core.measure_peak_flops(threads, seconds)
    return Peak(isa=peak.isa, threads=peak.threads, flops_per_s=peak.flops_per_s)


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
