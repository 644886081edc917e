"""The table of settings: what each is called, what it can be, who applies it, which contenders have it.

The command line, `timetrial list settings`, the job file and the judge of a launch read it here. What shows
that a setting took effect is a function of its name in control/judging.py; one that has none there is judged
by what the contender says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SettingKind:
    """`values`: all that it can be, the default first; empty: others. `by`: who applies it; the `program` is
    the contender's, around its plug-in or adapter. `of`: which contenders have it, all or those that say
    so."""

    words: str
    values: tuple[str, ...] = ()
    by: Literal["parent", "program", "contender"] = "contender"
    of: Literal["all", "some"] = "some"


SETTINGS: dict[str, SettingKind] = {
    "threads": SettingKind("how many threads compute: threads=1,2", of="all"),
    "parallel": SettingKind(
        "what threads share: the images of a batch, or each product of matrices: parallel=images,product",
        ("images", "product"),
    ),
    "affinity": SettingKind("which CPUs the contender may use: affinity=0-1 or 0+2", by="parent", of="all"),
    "flush_to_zero": SettingKind(
        "whether subnormal numbers count as zero: flush_to_zero=on,off",
        ("on", "off"),
        by="program",
        of="all",
    ),
    "isa": SettingKind("which variant of a native backend: isa=avx2", by="parent", of="all"),
    "mode": SettingKind(
        "how a framework executes: mode=eager,compiled; `timetrial frameworks list` has each one's"
    ),
    "cache": SettingKind(
        "what a framework compiled before: cache=warm (in the proof launch), cold (nothing)",
        ("warm", "cold"),
        by="parent",
    ),
    "python": SettingKind(
        "the interpreter of a framework or of your own step: python=/path/to/python", by="parent", of="all"
    ),
    "malloc.library": SettingKind(
        "the allocator in the place of glibc's: malloc.library=jemalloc,tcmalloc,mimalloc or a path",
        by="parent",
        of="all",
    ),
    "malloc.trim_threshold": SettingKind(
        "bytes free at the heap's end before glibc gives them back to the kernel", by="parent", of="all"
    ),
    "malloc.top_pad": SettingKind(
        "bytes that glibc takes from the kernel, or leaves, beyond what is needed", by="parent", of="all"
    ),
    "malloc.mmap_max": SettingKind(
        "arrays that may live outside glibc's heap: malloc.mmap_max=0", by="parent", of="all"
    ),
    "malloc.mmap_threshold": SettingKind(
        "bytes from which on an array lives outside glibc's heap", by="parent", of="all"
    ),
    "openmp.wait_policy": SettingKind(
        "whether OpenMP's threads spin while they wait: openmp.wait_policy=passive,active",
        ("passive", "active"),
        by="parent",
        of="all",
    ),
    "openmp.proc_bind": SettingKind(
        "whether OpenMP's threads stay at their places, and at which: openmp.proc_bind=close,spread",
        ("false", "true", "close", "spread", "master"),
        by="parent",
        of="all",
    ),
    "openmp.places": SettingKind(
        "what a place of OpenMP's threads is: openmp.places=cores,threads",
        ("cores", "threads", "sockets"),
        by="parent",
        of="all",
    ),
    "openmp.dynamic": SettingKind(
        "whether OpenMP may use fewer threads than asked: openmp.dynamic=false,true",
        ("false", "true"),
        by="parent",
        of="all",
    ),
    "blas.core_type": SettingKind("the CPU whose kernels OpenBLAS takes: blas.core_type=Haswell,SkylakeX"),
    "onednn.max_cpu_isa": SettingKind(
        "the newest ISA that oneDNN may use: onednn.max_cpu_isa=avx2,avx512_core"
    ),
    "torch.memory_format": SettingKind(
        "how libtorch lays out images: torch.memory_format=contiguous,channels_last"
    ),
    "torch.mkldnn": SettingKind(
        "whether libtorch may compute with the oneDNN inside: torch.mkldnn=true,false"
    ),
    "reference.ties": SettingKind(
        "who gets the gradient of equal maxima in `reference`: the first of them, as timetrial defines it, "
        "or all (as in Theano): reference.ties=first,all"
    ),
    "null.work_units": SettingKind("about microseconds of work in a step of `null`: null.work_units=20"),
    "null.step_us": SettingKind("microseconds that a step of `null` lasts, by the clock: null.step_us=100"),
    "null.fail": SettingKind(
        "how `null` fails: throw, abort, segv, exit, hang, nan, oom, grow, print, wrong_threads, "
        "unsupported_layer, slow_start"
    ),
    "null.fail_at": SettingKind("where `null` fails: null.fail_at=step,build"),
    "null.fail_after": SettingKind("steps of `null` that go well before one fails: null.fail_after=3"),
}

PROCESS_SETTINGS = tuple(name for name in SETTINGS if "." not in name)  # any backend may have them
PARENT_SETTINGS = tuple(name for name, kind in SETTINGS.items() if kind.by == "parent")
COMMON_SETTINGS = tuple(name for name, kind in SETTINGS.items() if kind.of == "all")
PARALLEL = SETTINGS["parallel"].values
CACHE_STATES = SETTINGS["cache"].values
