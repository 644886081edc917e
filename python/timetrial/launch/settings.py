"""Settings: checked before anything starts, judged afterwards by what the library and the kernel say.

The library's getter alone is known to lie, so a status comes from both; design.md, section 6, has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timetrial.errors import InputError, TimetrialError, Unavailable, nearest
from timetrial.experiment.case import Case
from timetrial.experiment.keys import PARALLEL, PROCESS_SETTINGS
from timetrial.launch.cpus import allowed_cpus, format_cpus, parse_cpus
from timetrial.launch.libraries import judge_library
from timetrial.launch.plugins import try_settings
from timetrial.launch.registry import Contender
from timetrial.records.model import Setting, SettingStatus, Thread

# Applied by the parent: the supervisor binds, the registry chooses. The contender never hears of them.
PARENT_SETTINGS = ("affinity", "isa", "python")
COMMON_SETTINGS = ("threads", *PARENT_SETTINGS)

CPU_OVER_WALL_SLACK = 0.1
# A thread that used less than this share of one processor did not take part in the work.
WORKING_SHARE = 0.01


def validate_settings(case: Case, contender: Contender, *, spanned: Collection[str] = ()) -> None:
    """Against this machine and this install, before anything starts.

    More threads or other cores than this process may use is a row `unavailable` (Unavailable) where the
    setting is one of `spanned` (an axis), bad input (InputError) where one value was asked.
    """
    known = (*COMMON_SETTINGS, *contender.settings)
    for name in case.settings:
        if name not in known:
            words = f"backend {case.backend!r} has no setting {name!r}.{nearest(name, set(known))}"
            # In an axis that spans every contender, some lack what others have.
            raise _beyond(name in PROCESS_SETTINGS and name in spanned, words)
    parallel = case.settings.get("parallel")
    if parallel is not None and parallel not in PARALLEL:
        raise InputError(
            f"parallel={parallel!r}: expected {' or '.join(PARALLEL)}.{nearest(parallel, PARALLEL)}"
        )
    allowed = allowed_cpus()
    threads = case.settings.get("threads")
    if threads is not None:
        if not threads.isdecimal() or int(threads) < 1:
            raise InputError(f"threads={threads!r}: expected a whole number from 1 to {len(allowed)}")
        if int(threads) > len(allowed):
            raise _beyond(
                "threads" in spanned,
                f"threads={threads}: this process may use {len(allowed)} "
                f"processor{'s' if len(allowed) > 1 else ''} (cores {format_cpus(allowed)})",
            )
    affinity = case.settings.get("affinity")
    if affinity is not None:
        outside = parse_cpus(affinity) - allowed
        if outside:
            raise _beyond(
                "affinity" in spanned,
                f"affinity={affinity}: this process may not use core {format_cpus(outside)}, "
                f"only {format_cpus(allowed)}",
            )
    _try_settings(case, contender, spanned)


def _try_settings(case: Case, contender: Contender, spanned: Collection[str]) -> None:
    """What only the plug-in and its library can judge: a file that is no CBLAS, an ISA that is none."""
    settings = job_settings(case, contender)
    if contender.kind != "native" or not settings.keys() - {"threads"}:
        return
    environment = setting_environment(case, contender)
    try:
        try_settings(contender.path, contender.fingerprint, contender.preload, settings, environment)
    except InputError as error:
        # A bad value is bad input, unless an axis brings together what does not go together: the words name
        # the settings that they are about. A process that died has named none.
        about = [name for name in settings if f"{name} = '" in str(error)] or list(settings)
        raise _beyond(any(name in spanned for name in about), str(error)) from None


def _beyond(is_axis: bool, words: str) -> TimetrialError:
    return Unavailable(words) if is_axis else InputError(words)


def job_settings(case: Case, contender: Contender) -> dict[str, str]:
    """What the contender is told: the words asked, the mode in any case, and of libraries that it opens
    itself their files."""
    asked = {name: str(value) for name, value in case.settings.items() if name not in PARENT_SETTINGS}
    if contender.version is not None and contender.version.modes:
        asked.setdefault("mode", contender.version.modes[0])
    for library in contender.libraries:
        if library.preload:
            asked.pop(library.setting, None)
        else:
            asked[library.setting] = str(library.path)
    return asked


def setting_environment(case: Case, contender: Contender, cache: Path | None = None) -> dict[str, str]:
    """The variables that a library reads its settings from: OMP_NUM_THREADS, MKL_THREADING_LAYER; and those
    that a framework's environment.toml always sets, with `cache` the folder of its compile caches."""
    parallel = case.settings.get("parallel")
    variables = {k: v for one in contender.libraries for k, v in one.variables(parallel).items()}
    version = contender.version
    if version is None:
        return variables
    places = {"cache": str(cache or ""), "path": str(contender.user_path or "")}
    variables |= {name: text.format(**places) for name, text in version.environment.items()}
    for name, table in version.settings.items():
        if name in case.settings:
            variables |= dict.fromkeys(table.environment, str(case.settings[name]))
    return variables


def affinity_of(case: Case, contender: Contender) -> str | None:
    """The processors to which the supervisor binds the contender: those asked; or the first n that we may
    use, for a framework whose only proven way to n threads is that."""
    asked = case.settings.get("affinity")
    table = contender.version.settings.get("threads") if contender.version else None
    if asked is None and table is not None and table.affinity and "threads" in case.settings:
        return format_cpus(sorted(allowed_cpus())[: int(case.settings["threads"])])
    return asked


@dataclass(frozen=True)
class Evidence:
    """What the contender said and what the kernel saw. Empty where the launch did not get so far."""

    readings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of the event `ready`
    isa: str = ""
    steady_threads: tuple[Thread, ...] = ()  # processor time while steady
    steady_wall_ns: int = 0
    tasks: int | None = None  # threads that exist, declared helpers left out
    interpreter: str | None = None
    libraries: Mapping[str, Path] = field(default_factory=dict)  # setting -> the file it shall be
    mapped: frozenset[Path] = frozenset()  # every file that the contender has mapped; empty: nobody looked


def judge_settings(case: Case, evidence: Evidence) -> list[Setting]:
    """One record per setting that was asked, and per setting that the contender reported on its own."""
    judged = []
    for name, asked in case.settings.items():
        if name in evidence.libraries:
            continue
        reading = evidence.readings.get(name, {})
        effective = _text(reading.get("effective"))
        source = _text(reading.get("how_read")) or ""
        if name == "threads":
            judged.append(_judge_threads(int(asked), effective, source, evidence))
        elif name == "affinity":
            judged.append(_judge_affinity(asked, evidence))
        elif name == "isa":
            judged.append(_judge_plainly(name, asked, evidence.isa or None, "the plug-in's description"))
        elif name == "python":
            judged.append(Setting(name=name, asked=asked, effective=evidence.interpreter,
                                  how_read="the path that was started", status="applied"))  # fmt: skip
        else:
            judged.append(_judge_plainly(name, asked, effective, source))
    for name, path in evidence.libraries.items():
        reading = evidence.readings.get(name, {})
        judged.append(judge_library(name, case.settings.get(name), path, reading, evidence.mapped))
    for name, reading in evidence.readings.items():
        if name not in case.settings and name not in evidence.libraries:
            judged.append(
                Setting(
                    name=name,
                    asked=None,
                    effective=_text(reading.get("effective")),
                    how_read=_text(reading.get("how_read")) or "",
                    status="unverifiable" if reading.get("effective") is None else "applied",
                )
            )
    return judged


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _judge_plainly(name: str, asked: str, effective: str | None, source: str) -> Setting:
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


def working_threads(evidence: Evidence) -> int | None:
    """How many threads took part in the work while steady; None if nobody looked."""
    if evidence.steady_wall_ns <= 0 or not evidence.steady_threads:
        return None
    enough_ns = WORKING_SHARE * evidence.steady_wall_ns
    return sum(thread.cpu_ns >= enough_ns for thread in evidence.steady_threads)


def _judge_threads(asked: int, getter: str | None, source: str, evidence: Evidence) -> Setting:
    """By design section 6: a pool of another size, a serial library or too much processor time is
    `ignored`; a pool of the right size of which fewer threads worked is `adjusted`."""
    sources = [source] if source else []
    working = working_threads(evidence)
    pool = int(getter) if getter is not None and getter.isdecimal() else None
    share = None
    if evidence.steady_wall_ns > 0 and evidence.steady_threads:
        share = sum(thread.cpu_ns for thread in evidence.steady_threads) / evidence.steady_wall_ns
        sources.append(f"CPU time over wall time {share:.2f}, working threads {working}")
    if evidence.tasks is not None:
        sources.append(f"tasks {evidence.tasks}")
    status: SettingStatus
    effective = pool
    if pool is not None and pool != asked:
        status = "ignored"
    elif share is not None and share > asked + CPU_OVER_WALL_SLACK:
        status, effective = "ignored", max(working or 0, math.ceil(share - CPU_OVER_WALL_SLACK))
    elif working is not None and working > asked:
        status, effective = "ignored", working
    elif evidence.tasks is not None and evidence.tasks < asked:
        # The getter may repeat what it was told: there are not even that many threads.
        status, effective = "ignored", evidence.tasks
    elif working is None and pool is None:
        status = "unverifiable"
    elif working is not None and working < asked:
        status, effective = "adjusted", max(1, working)
    else:
        status, effective = "applied", asked
    return Setting(
        name="threads",
        asked=str(asked),
        effective=None if effective is None else str(effective),
        how_read="; ".join(sources) or "nothing reports it",
        status=status,
    )


def _judge_affinity(asked: str, evidence: Evidence) -> Setting:
    wanted = parse_cpus(asked)
    source = "Cpus_allowed_list of every thread"
    if not evidence.steady_threads:
        return Setting(name="affinity", asked=asked, effective=None, how_read=source, status="unverifiable")
    masks = [parse_cpus(thread.allowed_cpus) for thread in evidence.steady_threads]
    together = frozenset().union(*masks)
    status: SettingStatus
    if together - wanted:
        status = "ignored"
    elif all(mask == wanted for mask in masks):
        status = "applied"
    else:
        status = "adjusted"  # the library bound its threads more narrowly, within what was asked
    return Setting(
        name="affinity", asked=asked, effective=format_cpus(together), how_read=source, status=status
    )


def mismatch(settings: list[Setting]) -> str | None:
    """The first setting that was shown not to take effect, in words."""
    for setting in settings:
        if setting.status == "ignored":
            working = setting.name == "threads" and f"working threads {setting.effective}" in setting.how_read
            verb = "working" if working else "in force"
            return f"{setting.name} asked {setting.asked}, {verb} {setting.effective}"
    return None
