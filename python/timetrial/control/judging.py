"""Settings judged when a launch is over, by what the library and the kernel say.

The library's getter alone is known to lie, so a status comes from both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from timetrial.caps import caps, in_force
from timetrial.cases.case import Case
from timetrial.cases.environment import PREFIX
from timetrial.control import (
    allocator,
    arithmetic,
    blas_variables,
    counting,
    float_mode,
    huge_pages,
    malloc,
    niceness,
    openmp,
    sampling,
)
from timetrial.control.cpus import allowed_cpus, format_cpus, parse_cpus
from timetrial.control.kernels import CORE_TYPE, judge_core_type
from timetrial.control.libraries import judge_library
from timetrial.control.manners import judge_affinity, judge_manners
from timetrial.control.threads import ThreadEvidence, judge_threads
from timetrial.control.topology import WORDS
from timetrial.processes.events import LoadedLibrary, Reading
from timetrial.records.model import Counter, Setting, SettingStatus, Thread


@dataclass(frozen=True)
class Evidence:
    """What the contender said and what the kernel saw. Empty where the launch did not get so far."""

    readings: Mapping[str, Reading] = field(default_factory=dict)  # of the event `ready`
    isa: str = ""
    threads: ThreadEvidence = field(default_factory=ThreadEvidence)
    interpreter: str | None = None
    tree: Path | None = None  # the checkout from which a step of the user's own shall be imported
    libraries: Mapping[str, Path] = field(default_factory=dict)  # setting -> the file it shall be
    sonames: Mapping[str, str] = field(default_factory=dict)  # setting -> the name it is found by
    loaded: Sequence[LoadedLibrary] = ()  # what the contender says of its BLAS and OpenMP libraries
    facts: Mapping[str, str] = field(default_factory=dict)  # what a plug-in says of what it built
    announced: Sequence[str] = ()  # kernels that copies of OpenBLAS named on standard error
    displayed: Mapping[str, list[str]] = field(default_factory=dict)  # what OpenMP runtimes printed there
    cache: Setting | None = None
    given: frozenset[int] | None = None  # processors on which it was to compute; None: not known
    computed: Sequence[Thread] = ()  # every thread while steady, with how it treats subnormals
    environment: Mapping[str, str] = field(default_factory=dict)  # that the process was started with
    mapped: frozenset[Path] = frozenset()  # every file that the contender has mapped; empty: nobody looked
    pages: huge_pages.Seen = field(default_factory=huge_pages.Seen)
    looks: sampling.Looks = field(default_factory=sampling.Looks)
    counters: Sequence[Counter] = ()  # of the steady part
    proven: arithmetic.Proven = field(default_factory=arithmetic.Proven)
    caps: in_force.InForce | None = None  # None: it was not started


Judge = Callable[[str, str, Evidence], Setting]


def _plainly(name: str, asked: str, evidence: Evidence) -> Setting:
    """By what the contender reads back."""
    reading = evidence.readings.get(name, Reading())
    return _compared(name, asked, reading.effective, reading.how_read or "")


def _threads(name: str, asked: str, evidence: Evidence) -> Setting:
    reading = evidence.readings.get(name, Reading())
    return judge_threads(int(asked), reading.effective, reading.how_read or "", evidence.threads)


def _affinity(name: str, asked: str, evidence: Evidence) -> Setting:
    wanted = (evidence.given or frozenset()) if asked in WORDS else parse_cpus(asked)
    return judge_affinity(asked, wanted, evidence.threads)


def _float_mode(name: str, asked: str, evidence: Evidence) -> Setting:
    return float_mode.judge_float_mode(asked, evidence.readings.get(name, Reading()), evidence.computed)


def _cache(name: str, asked: str, evidence: Evidence) -> Setting:
    return evidence.cache or _plainly(name, asked, evidence)


def _core_type(name: str, asked: str, evidence: Evidence) -> Setting:
    known = evidence.readings.get(name, Reading()).effective is not None
    if known or not evidence.loaded:
        return _plainly(name, asked, evidence)
    return judge_core_type(asked, evidence.loaded, evidence.announced)


def _isa(name: str, asked: str, evidence: Evidence) -> Setting:
    return _compared(name, asked, evidence.isa or None, "the plug-in's description")


def _python(name: str, asked: str, evidence: Evidence) -> Setting:
    return Setting(
        name=name,
        asked=asked,
        effective=evidence.interpreter,
        how_read="the path that was started",
        status="applied",
    )


def _revision(name: str, asked: str, evidence: Evidence) -> Setting:
    file = evidence.facts.get("callable.module")
    is_there = file and evidence.tree and Path(file).resolve().is_relative_to(evidence.tree)
    return _compared(name, asked, asked if is_there else file, f"the step's module: {file}")


def _malloc(name: str, asked: str, evidence: Evidence) -> Setting:
    return malloc.judge(name, asked, evidence.environment, evidence.mapped)


def _variable(name: str, asked: str, evidence: Evidence) -> Setting:
    effective = evidence.environment.get(name.removeprefix(PREFIX))
    return _compared(name, asked, effective, "the variables that the process was started with")


def _allocator(name: str, asked: str, evidence: Evidence) -> Setting:
    others = {path for path in evidence.mapped if path.name.startswith(malloc.OTHERS)}
    return allocator.judge({name: asked}, evidence.mapped, others)


def _huge_pages(name: str, asked: str, evidence: Evidence) -> Setting:
    return huge_pages.judge(asked, evidence.pages, evidence.environment, evidence.mapped)


def _nice(name: str, asked: str, evidence: Evidence) -> Setting:
    return niceness.judge(asked, evidence.threads.habits)


def _samples(name: str, asked: str, evidence: Evidence) -> Setting:
    return sampling.judge(asked, evidence.looks)


def _counters(name: str, asked: str, evidence: Evidence) -> Setting:
    return counting.judge(asked, evidence.counters)


def _determinism(name: str, asked: str, evidence: Evidence) -> Setting:
    return arithmetic.judge_determinism(asked, evidence.readings.get(name, Reading()), evidence.proven)


def _math_mode(name: str, asked: str, evidence: Evidence) -> Setting:
    return arithmetic.judge_math_mode(asked, evidence.readings.get(name, Reading()), evidence.proven)


def _openmp(name: str, asked: str, evidence: Evidence) -> Setting:
    return openmp.judge(name, asked, evidence.displayed)


def _thread_timeout(name: str, asked: str, evidence: Evidence) -> Setting:
    copies = blas_variables.copies_of(evidence.loaded, evidence.facts)
    return blas_variables.judge_timeout(asked, evidence.environment, copies)


def _branch(name: str, asked: str, evidence: Evidence) -> Setting:
    return blas_variables.judge_branch(asked, blas_variables.copies_of(evidence.loaded, evidence.facts))


def _cap(name: str, asked: str, evidence: Evidence) -> Setting:
    return in_force.judge(name, asked, evidence.caps)


def _cap_by(name: str, asked: str, evidence: Evidence) -> Setting:
    return in_force.judge_by(asked, evidence.caps)


# What shows that a setting took effect; of those in cases/settings.py that are not here, what the contender
# says of itself.
JUDGES: dict[str, Judge] = {
    "threads": _threads,
    "affinity": _affinity,
    float_mode.NAME: _float_mode,
    "cache": _cache,
    CORE_TYPE: _core_type,
    "isa": _isa,
    "python": _python,
    "revision": _revision,
    allocator.NAME: _allocator,
    huge_pages.NAME: _huge_pages,
    niceness.NAME: _nice,
    sampling.NAME: _samples,
    counting.NAME: _counters,
    arithmetic.DETERMINISM: _determinism,
    arithmetic.MATH_MODE: _math_mode,
    blas_variables.TIMEOUT: _thread_timeout,
    blas_variables.BRANCH: _branch,
    **dict.fromkeys(caps.NAMES, _cap),
    caps.BY: _cap_by,
    **dict.fromkeys((malloc.WHOLE, *malloc.NAMES), _malloc),
    **dict.fromkeys(openmp.NAMES, _openmp),
}


def judge_settings(case: Case, evidence: Evidence) -> list[Setting]:
    """One record per setting that was asked, and per setting that the contender reported on its own."""
    judged = [
        JUDGES.get(name, _variable if name.startswith(PREFIX) else _plainly)(name, asked, evidence)
        for name, asked in case.settings.items()
        if name not in evidence.libraries
    ]
    judged += in_force.keepers(case.settings, evidence.caps)
    for name, path in evidence.libraries.items():
        reading = evidence.readings.get(name, Reading())
        soname = evidence.sonames.get(name, "")
        judged.append(judge_library(name, case.settings.get(name), path, reading, evidence.mapped, soname))
    for name, reading in evidence.readings.items():
        if name == float_mode.NAME and name not in case.settings:
            judged.append(float_mode.judge_float_mode(None, reading, evidence.computed))
        elif name not in case.settings and name not in evidence.libraries:
            judged.append(
                Setting(
                    name=name,
                    asked=None,
                    effective=reading.effective,
                    how_read=reading.how_read or "",
                    status="unverifiable" if reading.effective is None else "applied",
                )
            )
    return [*judged, *judge_manners(evidence.threads, evidence.given, case.settings)]


def of_a_failure(settings: list[Setting], *, is_ready: bool) -> list[Setting]:
    """What is known of them where the contender ended before its time: caps, and what had been read back by
    then. What nobody saw is not held against it."""
    kept = [one for one in settings if is_ready or one.name in (*caps.NAMES, caps.BY)]
    return [
        one.model_copy(update={"status": "unverifiable", "how_read": f"{one.how_read}; it ended too early"})
        if one.status == "ignored" and one.name not in caps.NAMES
        else one
        for one in kept
    ]


def _compared(name: str, asked: str, effective: str | None, source: str) -> Setting:
    status: SettingStatus = "unverifiable"
    if effective is not None:
        status = "applied" if _equal(asked, effective) else "ignored"
    return Setting(
        name=name, asked=asked, effective=effective, how_read=source or "nothing reports it", status=status
    )


def _equal(asked: str, effective: str) -> bool:
    if asked.strip().lower() == effective.strip().lower():
        return True
    try:
        return math.isclose(float(asked), float(effective), rel_tol=1e-9)
    except ValueError:
        return False


def _held_pools(threads: int) -> str:
    cpus = format_cpus(frozenset(sorted(allowed_cpus())[:threads]))
    return f": pools of Python's and XLA's hear of no number; affinity={cpus} in place of it holds them"


def mismatch(settings: list[Setting], *, own_step: bool = False) -> str | None:
    """The first setting that was shown not to take effect, in words; of a step of the user's own also what
    holds pools of threads that are told nothing."""
    for setting in settings:
        if setting.status == "ignored":
            working = setting.name == "threads" and f"working threads {setting.effective}" in setting.how_read
            verb = "working" if working else "in force"
            words = f"{setting.name} asked {setting.asked}, {verb} {setting.effective}"
            return words + (_held_pools(int(setting.asked or 1)) if own_step and working else "")
    return None
