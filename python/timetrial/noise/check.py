"""The noise check: what was seen, what it means for timings, and what one could do. Nothing is changed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial.control.cpus import allowed_cpus, format_cpus
from timetrial.control_groups import Throttled, cpu_groups, quota_cpus, throttled
from timetrial.noise.contention import MEMORY, SLOW, Level, read_levels
from timetrial.observing.frequency import highest_frequency_hz, with_siblings
from timetrial.observing.witnesses import ProcessorTimes, read_processors

SECONDS = 2.0
# From which on something is worth advice.
STOLEN, WAITED, SLOW_SHARE = 0.01, 0.02, 0.1
_CPU = "sys/devices/system/cpu"


@dataclass(frozen=True)
class NoiseFinding:
    """One thing that is known to make timings restless."""

    name: str  # what was looked at
    seen: str | None  # what it is here; None where it cannot be told
    means: str  # for timings; of what cannot be told, why not
    advice: str | None = None  # what one could do; None: nothing needs to be done


@dataclass(frozen=True)
class Look:
    """The counters at one moment. What nobody counts is None."""

    time_ns: int
    processors: dict[int, ProcessorTimes]
    waited_ns: int | None  # this thread, ready for a processor that others had
    throttled: Throttled | None


def look(root: Path = Path("/")) -> Look:
    """Now. `root`: where /proc and /sys lie."""
    try:
        processors = read_processors(root)
    except OSError:
        processors = {}
    words = (_read(root / "proc/thread-self/schedstat") or "").split()
    waited = int(words[1]) if len(words) > 1 and words[1].isdecimal() else None
    return Look(time.monotonic_ns(), processors, waited, throttled(cpu_groups("self", root)))


def check_noise(
    seconds: float = SECONDS,
    root: Path = Path("/"),
    measure: Callable[[float], Sequence[Level]] = read_levels,
) -> list[NoiseFinding]:
    """Reads caches and memory for so long, and looks at the kernel's counters around it; a list that always
    has the same order. `root`: where /proc and /sys lie."""
    before = look(root)
    levels = measure(seconds)
    after = look(root)
    cpus = allowed_cpus()
    return [
        _steal(before, after, cpus),
        _wait(before, after),
        *_contention(levels),
        _governor(root),
        _frequency(cpus, root),
        _quota(before, after, root),
        _layout(root),
        _huge_pages(root),
        _siblings(cpus, root),
    ]


def _unknown(name: str, why: str) -> NoiseFinding:
    return NoiseFinding(name, None, why)


def _steal(before: Look, after: Look, cpus: Collection[int]) -> NoiseFinding:
    name = "time stolen"
    known = [cpu for cpu in cpus if cpu in before.processors and cpu in after.processors]
    passed_s = (after.time_ns - before.time_ns) / 1e9
    if not known or passed_s <= 0:
        return _unknown(name, "/proc/stat counts no processor that timetrial may use")
    stolen = sum(after.processors[cpu].stolen_s - before.processors[cpu].stolen_s for cpu in known)
    share = stolen / (passed_s * len(known))
    return NoiseFinding(
        name,
        f"{100 * share:.1f} % of the CPUs' time",
        "what a hypervisor gave to other guests while this one wanted it; 0 on a host that does not tell",
        "measure at another hour, or on a machine of your own" if share >= STOLEN else None,
    )


def _wait(before: Look, after: Look) -> NoiseFinding:
    name = "wait for a CPU"
    if before.waited_ns is None or after.waited_ns is None:
        return _unknown(name, "the kernel keeps no /proc/thread-self/schedstat")
    share = (after.waited_ns - before.waited_ns) / max(after.time_ns - before.time_ns, 1)
    return NoiseFinding(
        name,
        f"{100 * share:.1f} % of the time",
        "a thread that was ready to run stood behind other programs",
        "end what else runs, or keep it off some CPUs and use those: affinity=" if share >= WAITED else None,
    )


def _contention(levels: Sequence[Level]) -> list[NoiseFinding]:
    if not levels:
        return [_unknown("reads of caches", "nothing was measured")]
    found = []
    for level in levels:
        way = "one by one" if level.is_chase else "in a row"
        place = level.place if level.place == MEMORY else f"the {level.place}"
        found.append(
            NoiseFinding(
                f"reads of {place}, {way}",
                f"{level.fast_ns:.1f} ns a line, spread {100 * level.spread:.0f} %, "
                f"{100 * level.slow_share:.0f} % of the time slow",
                f"over {level.bytes / 2**20:.3g} MiB; slow: {SLOW:g} times the fast level and more, as while "
                "a neighbor uses it too",
                "take more launches, and believe ratios of contenders that took turns"
                if level.slow_share >= SLOW_SHARE
                else None,
            )
        )
    if all(level.place != MEMORY for level in levels):
        words = "the last cache is so large that arrays beyond it would take too long"
        found.append(_unknown("reads of memory", words))
    return found


def _governor(root: Path) -> NoiseFinding:
    name = "frequency governor"
    governor = _read(root / f"{_CPU}/cpu0/cpufreq/scaling_governor")
    if governor is None:
        return _unknown(name, "no cpufreq here: a virtual machine's host, or the firmware, decides alone")
    return NoiseFinding(
        name,
        governor,
        "who chooses the clock rate",
        None if governor == "performance" else "sudo cpupower frequency-set -g performance",
    )


def _frequency(cpus: Collection[int], root: Path) -> NoiseFinding:
    name = "clock frequency"
    now = highest_frequency_hz(cpus, root)
    boost = {"0": ", boost off", "1": ", boost on"}.get(_read(root / f"{_CPU}/cpufreq/boost") or "", "")
    if now is None:
        return _unknown(name, "no cpufreq here: nobody says at which clock rate the CPUs run")
    return NoiseFinding(
        name,
        f"{now / 1e9:.2f} GHz{boost}",
        "behind some seconds of work; with boost it depends on heat, and on how many CPUs work",
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost holds it" if boost.endswith("on") else None,
    )


def _quota(before: Look, after: Look, root: Path) -> NoiseFinding:
    name = "CPU quota"
    groups = cpu_groups("self", root)
    if not groups:
        return _unknown(name, "no control group that shares out CPU time can be seen from here")
    quota = quota_cpus(groups)
    stood_ms = None
    if before.throttled and after.throttled:
        stood_ms = (after.throttled.ns - before.throttled.ns) / 1e6
    stood = "" if stood_ms is None else f", stood still {stood_ms:.0f} ms in this check"
    if quota is None and not stood_ms:
        return NoiseFinding(name, f"none{stood}", "nothing stops a contender that uses all its CPUs")
    return NoiseFinding(
        name,
        ("none of its own" if quota is None else f"{quota:.1f} CPUs") + stood,
        "once it is used up, the kernel stops all threads until its period ends",
        "raise it (docker run --cpus, cpu.max), or use fewer threads than it allows",
    )


def _layout(root: Path) -> NoiseFinding:
    name = "address randomization"
    words = {"0": "off", "1": "on, but for the heap", "2": "on"}
    value = _read(root / "proc/sys/kernel/randomize_va_space")
    if value not in words:
        return _unknown(name, "the kernel does not say (kernel.randomize_va_space)")
    return NoiseFinding(
        name,
        words[value],
        "each launch has its memory elsewhere, and some places are faster: that is why launches differ"
        if value != "0"
        else "launches have their memory at the same places, lucky or not: they agree more than they should",
        None if value != "0" else "sudo sysctl kernel.randomize_va_space=2 shows what is due to luck",
    )


def _huge_pages(root: Path) -> NoiseFinding:
    name = "huge pages"
    text = _read(root / "sys/kernel/mm/transparent_hugepage/enabled")
    match = re.search(r"\[(\w+)\]", text or "")
    if match is None:
        return _unknown(name, "the kernel does not say (/sys/kernel/mm/transparent_hugepage)")
    return NoiseFinding(
        name,
        match[1],
        {
            "always": "large arrays get some when there are some: launches may differ by it",
            "madvise": "only programs that ask get them",
            "never": "nobody gets them: large arrays miss the TLB more often",
        }.get(match[1], "a word of a newer kernel"),
    )


def _siblings(cpus: Collection[int], root: Path) -> NoiseFinding:
    name = "CPUs that share a core"
    folder = root / f"{_CPU}/cpu{min(cpus)}/topology"
    if _read(folder / "thread_siblings_list") is None:
        return _unknown(name, "the kernel does not say which CPUs share a core")
    cores = {with_siblings([cpu], root) for cpu in cpus}
    shared = sorted((core for core in cores if len(core) > 1), key=min)
    if not shared:
        return NoiseFinding(name, "none", "as the kernel has it; a hypervisor may show it otherwise")
    firsts = format_cpus(min(core & set(cpus)) for core in cores)
    return NoiseFinding(
        name,
        ", ".join(format_cpus(core) for core in shared[:4]) + (" ..." if len(shared) > 4 else ""),
        "two threads on one core do 1.0 to 1.3 times the work of one",
        f"one CPU of each core: affinity={firsts}",
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
