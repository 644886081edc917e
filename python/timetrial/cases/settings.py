"""The table of settings: what each is called, what it can be, who applies it, which contenders have it.

The command line, `timetrial list settings`, `timetrial settings`, the job file and the judge of a launch read
it here. What shows that a setting took effect is a function of its name in control/judging.py; one that has
none there is judged by what the contender says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SettingKind:
    """`values`: all that it can be; empty: others. `default`: what is in force where nobody asks. `by`: who
    applies it; the `program` is the contender's, around its plug-in or adapter. `of`: which contenders have
    it, all or those that say so. `read`: what shows that it took effect."""

    words: str
    read: str
    values: tuple[str, ...] = ()
    default: str = "the contender's own"
    by: Literal["parent", "program", "contender"] = "contender"
    of: Literal["all", "some"] = "some"


_OPENMP = "what each OpenMP runtime of the process prints as it is loaded (OMP_DISPLAY_ENV)"
_ENVIRON = (
    "the variables that the process was started with; that the allocator is glibc's, by the mapped files"
)
_NULL = "what the plug-in does"

SETTINGS: dict[str, SettingKind] = {
    "threads": SettingKind(
        "how many threads compute: threads=1,2",
        "the library's getter, and by the kernel: threads that work, CPU time over wall time",
        of="all",
    ),
    "inter_op_threads": SettingKind(
        "how many operations of a framework may run at a time: inter_op_threads=1,2",
        "the framework's getter alone: threads that work do not show it, because the operations of a step "
        "follow each other",
    ),
    "parallel": SettingKind(
        "what threads share: the images of a batch, or each product of matrices: parallel=images,product",
        "what the plug-in does",
        ("images", "product"),
        default="images; product in onednn and in frameworks",
    ),
    "lengths": SettingKind(
        "how much of a batch of sequences of unequal lengths is computed: lengths=padded (all steps there "
        "are), rounded (as many as its longest has, rounded up to one of eight numbers), trimmed (as many as "
        "its longest has), packed (those that count)",
        "the contender, and what it counts: in every step of the proof as many steps as that way has",
        ("padded", "rounded", "trimmed", "packed"),
        default="packed in eigen, cblas and Chainer, rounded in onednn, padded in others",
    ),
    "convolution": SettingKind(
        "the algorithm of convolutions in eigen, cblas (by_shape, im2col, winograd, auto) and onednn (direct,"
        " winograd, auto); auto: a timed trial for each layer; im2col or direct where it does not apply",
        "what the plug-in built for each layer and direction, which the record's facts name",
        ("by_shape", "im2col", "direct", "winograd", "auto"),
        default="by_shape in eigen and cblas, direct in onednn",
    ),
    "recompute": SettingKind(
        "whether eigen, cblas and onednn compute what a convolution alone reads of a batch_norm once more on "
        "the way back, instead of keeping it: recompute=on,off",
        "what the plug-in built",
        ("on", "off"),
        default="on in eigen and cblas, and in onednn where it saves 128 MB or more",
    ),
    "affinity": SettingKind(
        "which CPUs the contender may use: affinity=0-1 or 0+2; or as many as it has threads: compact "
        "(few cores), spread (many), each (spread, a thread on each)",
        "the CPUs that the kernel allows each thread, at every look",
        default="all that timetrial may use",
        by="parent",
        of="all",
    ),
    "nice": SettingKind(
        "how gladly it lets others go first, from -20 to 19: nice=10; below timetrial's own by permission",
        "the nice value of each thread, by the kernel, at every look",
        default="timetrial's own",
        by="parent",
        of="all",
    ),
    "flush_to_zero": SettingKind(
        "whether subnormal numbers count as zero: flush_to_zero=on,off",
        "MXCSR of every thread that computed, by the kernel",
        ("on", "off"),
        by="program",
        of="all",
    ),
    "determinism": SettingKind(
        "whether a step taken twice must give the same bits: determinism=on (with what the backend has for "
        "it, if anything), off",
        "the bits of five steps of the proof, taken twice",
        ("on", "off"),
        default="the backend's own, and the table says if bits differ",
        of="all",
    ),
    "isa": SettingKind(
        "which variant of a native backend: isa=avx2",
        "the plug-in's description",
        default="the best that the CPU has",
        by="parent",
        of="all",
    ),
    "setup": SettingKind(
        "a function of yours that a step of your own has called before its module is imported: "
        "setup=package.module:function, from Python the function",
        "the contender, behind the call",
        default="none",
        by="program",
    ),
    "mode": SettingKind(
        "how a framework executes: mode=eager,compiled; `timetrial frameworks list` has each one's",
        "the framework, by what was built",
        default="the first of the framework's",
    ),
    "cache": SettingKind(
        "what a framework, or a step of yours, compiled: cache=warm (in the proof launch), cold (nothing); "
        "of onednn which kernels it chose by trial: warm (in the first timed launch), cold (each tries)",
        "the files of the compile cache; of onednn what it says it read",
        ("warm", "cold"),
        default="warm",
        by="parent",
    ),
    "python": SettingKind(
        "the interpreter of a framework or of your own step: python=/path/to/python",
        "the path that was started",
        default="the one that the framework is installed for",
        by="parent",
        of="all",
    ),
    "revision": SettingKind(
        "the commit in whose checkout, beside the working tree, your own step is imported, or the folder of "
        "another checkout: timetrial race --against main",
        "the file that the step's module was imported from",
        default="the working tree",
        by="parent",
        of="all",
    ),
    "malloc": SettingKind(
        "whether glibc's allocator keeps the memory that a step frees for the next one: malloc=keep, default "
        "(it may give it back to the kernel, and take it anew page by page); keep is "
        "malloc.trim_threshold=1000000000 malloc.mmap_max=0",
        _ENVIRON,
        ("keep", "default"),
        default="keep in races of times, for steps of your own, in tune; otherwise default",
        by="parent",
        of="all",
    ),
    "malloc.library": SettingKind(
        "the allocator in the place of glibc's: malloc.library=jemalloc,tcmalloc,mimalloc or a path",
        "the files that the kernel has mapped",
        default="glibc's",
        by="parent",
        of="all",
    ),
    "malloc.trim_threshold": SettingKind(
        "bytes free at the heap's end before glibc gives them back to the kernel",
        _ENVIRON,
        by="parent",
        of="all",
    ),
    "malloc.top_pad": SettingKind(
        "bytes that glibc takes from the kernel, or leaves, beyond what is needed",
        _ENVIRON,
        by="parent",
        of="all",
    ),
    "malloc.mmap_max": SettingKind(
        "arrays that may live outside glibc's heap: malloc.mmap_max=0", _ENVIRON, by="parent", of="all"
    ),
    "malloc.mmap_threshold": SettingKind(
        "bytes from which on an array lives outside glibc's heap", _ENVIRON, by="parent", of="all"
    ),
    "memory.huge_pages": SettingKind(
        "pages of 2 MB: memory.huge_pages=never (the kernel refuses them), madvise (glibc's malloc asks for "
        "them)",
        "THP_enabled and the mappings that want or have them, in /proc/PID/status and smaps",
        ("never", "madvise"),
        default="the machine's (/sys/kernel/mm/transparent_hugepage/enabled)",
        by="parent",
        of="all",
    ),
    "memory.cap": SettingKind(
        "the most memory that it may hold: memory.cap=512MB,2GB,none",
        "the control group's files and /proc/PID/cgroup; otherwise RLIMIT_DATA by getrlimit(2), and the "
        "looks of the supervisor",
        default="none",
        by="parent",
        of="all",
    ),
    "memory.cap_by": SettingKind(
        "who keeps memory.cap: memory.cap_by=cgroup (what is charged to a control group), data (RLIMIT_DATA: "
        "heap and private pages of each process), watchdog (the supervisor, who looks and ends it), "
        "address_space (RLIMIT_AS: what is only reserved counts too)",
        "what was chosen, which is in every record with a cap",
        ("cgroup", "data", "watchdog", "address_space"),
        default="cgroup where one may be made (TIMETRIAL_CGROUP), otherwise data",
        by="parent",
        of="all",
    ),
    "cpu.cap": SettingKind(
        "the most processors that it may use, by time: cpu.cap=0.5,2,none; needs a control group "
        "(TIMETRIAL_CGROUP)",
        "the control group's files and /proc/PID/cgroup",
        default="none",
        by="parent",
        of="all",
    ),
    "processes.cap": SettingKind(
        "the most processes and threads that it may have: processes.cap=8,none; for root it needs a control "
        "group (TIMETRIAL_CGROUP)",
        "the control group's files and /proc/PID/cgroup; otherwise RLIMIT_NPROC by getrlimit(2)",
        default="none",
        by="parent",
        of="all",
    ),
    "open_files.cap": SettingKind(
        "the most files that each of its processes may have open: open_files.cap=64,none",
        "RLIMIT_NOFILE by getrlimit(2)",
        default="none",
        by="parent",
        of="all",
    ),
    "samples.hz": SettingKind(
        "how often a second the supervisor looks at memory and processors, for curves: samples.hz=20; 0: "
        "never",
        "the lines of samples.tsv",
        default="20 in learning and resource launches, 0 in those that are timed",
        by="parent",
        of="all",
    ),
    "counters": SettingKind(
        "whether counters of the processors and of the kernel, and energy, are read at the borders of the "
        "steady part: counters=on",
        "what was counted, in the record",
        ("on", "off"),
        default="on in learning and resource launches, off in those that are timed",
        by="parent",
        of="all",
    ),
    "openmp.wait_policy": SettingKind(
        "whether OpenMP's threads spin while they wait: openmp.wait_policy=passive,active",
        _OPENMP,
        ("passive", "active"),
        by="parent",
        of="all",
    ),
    "openmp.spin_count": SettingKind(
        "turns of a loop for which GNU's OpenMP threads wait until they sleep: openmp.spin_count=0,infinite",
        _OPENMP,
        by="parent",
        of="all",
    ),
    "openmp.blocktime": SettingKind(
        "milliseconds for which threads of LLVM's and Intel's OpenMP wait until they sleep: "
        "openmp.blocktime=0,200",
        _OPENMP,
        by="parent",
        of="all",
    ),
    "openmp.proc_bind": SettingKind(
        "whether OpenMP's threads stay at their places, and at which: openmp.proc_bind=close,spread",
        _OPENMP,
        ("false", "true", "close", "spread", "master"),
        by="parent",
        of="all",
    ),
    "openmp.places": SettingKind(
        "what a place of OpenMP's threads is: openmp.places=cores,threads",
        _OPENMP,
        ("cores", "threads", "sockets"),
        by="parent",
        of="all",
    ),
    "openmp.dynamic": SettingKind(
        "whether OpenMP may use fewer threads than asked: openmp.dynamic=false,true",
        _OPENMP,
        ("false", "true"),
        by="parent",
        of="all",
    ),
    "blas.core_type": SettingKind(
        "the CPU whose kernels OpenBLAS takes: blas.core_type=Haswell,SkylakeX",
        "every copy's openblas_get_corename(), and what each announces as it is loaded",
        default="OpenBLAS's choice",
    ),
    "blas.thread_timeout": SettingKind(
        "for how long threads of OpenBLAS's own wait until they sleep, as a power of two, in turns of the "
        "processor's clock: blas.thread_timeout=4 (at once) to 30",
        "the variables that the process was started with; that OpenBLAS has threads of its own, by its "
        "configuration",
        default="OpenBLAS's, 26",
        by="parent",
        of="all",
    ),
    "mkl.cbwr": SettingKind(
        "the instruction set by which MKL computes, and so its results to the bit: mkl.cbwr=COMPATIBLE,AVX2",
        "MKL_CBWR_Get(); a copy inside a framework does not tell",
        ("COMPATIBLE", "SSE4_2", "AVX2", "AVX512", "AVX512_E1"),
        default="MKL's choice",
        by="parent",
        of="all",
    ),
    "onednn.max_cpu_isa": SettingKind(
        "the newest ISA that oneDNN may use: onednn.max_cpu_isa=avx2,avx512_core",
        "dnnl_get_effective_cpu_isa()",
        default="the best that the CPU has",
    ),
    "onednn.math_mode": SettingKind(
        "whether oneDNN may round factors of products: onednn.math_mode=strict,bf16,tf32,any; what computes "
        "in less than f32 is proven as that",
        "dnnl_get_default_fpmath_mode(), and the errors of the proof",
        ("strict", "bf16", "f16", "tf32", "any"),
        default="strict",
    ),
    "torch.memory_format": SettingKind(
        "how libtorch lays out images: torch.memory_format=contiguous,channels_last",
        "the strides of the images",
        default="contiguous",
    ),
    "torch.mkldnn": SettingKind(
        "whether libtorch and PyTorch may compute with the oneDNN inside: torch.mkldnn=true,false",
        "ATen's getter",
        ("true", "false"),
        default="true",
    ),
    "reference.ties": SettingKind(
        "who gets the gradient of equal maxima in `reference`: the first of them, as timetrial defines it, "
        "or all (as in Theano): reference.ties=first,all. A rectifier's slope at 0, which timetrial defines "
        "as 0, is 1/2 or 1 with first-half, first-one, all-half, all-one",
        _NULL,
        default="first",
    ),
    "reference.rounding": SettingKind(
        "a draw of random parts, 2^-20 at most, by which gradients between layers of `reference` are off: "
        "how far rounding can throw the gradients of a network; 0: none. reference.rounding=1",
        _NULL,
        default="0",
    ),
    "null.work_units": SettingKind(
        "about microseconds of work in a step of `null`: null.work_units=20", _NULL, default="0"
    ),
    "null.step_us": SettingKind(
        "microseconds that a step of `null` lasts, by the clock: null.step_us=100", _NULL, default="0"
    ),
    "null.fail": SettingKind(
        "how `null` fails: throw, abort, segv, exit, hang, nan, oom, grow, print, wrong_threads, "
        "unsupported_layer, slow_start",
        _NULL,
        default="it does not",
    ),
    "null.fail_at": SettingKind("where `null` fails: null.fail_at=step,build", _NULL, default="step"),
    "null.fail_after": SettingKind(
        "steps of `null` that go well before one fails: null.fail_after=3", _NULL, default="0"
    ),
}

# Values that the lines above a table say in plain words.
PLAIN_WORDS = {("malloc", "keep"): "allocator keeps its memory"}
PROCESS_SETTINGS = tuple(name for name in SETTINGS if "." not in name)  # any backend may have them
PARENT_SETTINGS = tuple(name for name, kind in SETTINGS.items() if kind.by == "parent")
# Demands on whoever is there; a contender hears of one if it has something to do about it.
DEMANDS = ("determinism",)
COMMON_SETTINGS = tuple(name for name, kind in SETTINGS.items() if kind.of == "all")
PARALLEL = SETTINGS["parallel"].values
CACHE_STATES = SETTINGS["cache"].values
