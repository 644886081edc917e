"""What is ready on this machine, what is missing, and the one command that cures it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from timetrial.cases.case import Case, Workload
from timetrial.errors import TimetrialError, Unavailable
from timetrial.experiment.machine import machine_facts
from timetrial.library_files import known_libraries, version_of

if TYPE_CHECKING:
    from timetrial.noise import NoiseFinding

State = Literal["ready", "missing", "broken"]

# What one would gain by what is missing: it is asked for nowhere else.
STACKS, FRAMEWORKS = "more native stacks to compare", "whole frameworks to compare"
LIBRARIES = "libraries below a stack (blas.library=, onednn.library=, malloc.library=)"
IMAGES, REPORTS = "real images, as data sets", "figures, data frames, HTML reports"
COUNTERS = "instructions, cycles and energy of a step (--columns)"
DATA = "real images, texts and series, as data sets"
# What optional parts of timetrial import, the extra that brings it, and what one gains.
_MODULES = {
    "scikit-learn (digits8, digits28)": ("sklearn", "demo", IMAGES),
    "scikit-image and Pillow (photographs, images of yours)": ("skimage", "images", IMAGES),
    "matplotlib (figures)": ("matplotlib", "report", REPORTS),
    "pandas (to_pandas)": ("pandas", "report", REPORTS),
    "jinja2 (HTML reports)": ("jinja2", "report", REPORTS),
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str  # what was looked at
    state: State  # ready, missing or broken
    detail: str  # where it is, which version, or what is wrong
    cure: str | None = None  # the command that mends it
    gain: str = ""  # of what is optional: what one would have with it


@dataclass(frozen=True)
class Diagnosis:
    """Everything `timetrial doctor` says."""

    checks: list[Check]  # one per thing that was looked at
    machine: dict[str, Any]  # facts about it, as in records
    clock_ns: float | None  # cost of reading the clock
    peak_flops: dict[str, float]  # measured f32 peak, by number of threads
    two_threads: float | None  # work of two threads over that of one, in the same time; None: one CPU
    advice: list[str]  # what makes timings restless here
    noise: list[NoiseFinding] = field(default_factory=list)  # the noise check, where it was asked for

    @property
    def healthy(self) -> bool:
        """Whether timetrial itself works; optional parts may be missing."""
        return not any(check.state == "broken" for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        from timetrial.report.doctor import to_text

        return to_text(self)


def doctor(*, noise: bool = False) -> Diagnosis:
    """Looks at backends, optional parts, the clock and the machine. Takes about a second; changes nothing.
    `noise`: also at all that is known to make timings restless, for two seconds more."""
    machine = machine_facts()
    try:
        from timetrial import core
        from timetrial.core import cpu
        from timetrial.noise import advice_for, check_noise, poor_gain, two_threads_over_one
    except (ImportError, TimetrialError) as error:
        cure = "pip install --force-reinstall timetrial"
        return Diagnosis([Check("compiled core", "broken", str(error), cure)], machine, None, {}, None, [])
    checks = [
        *_core_checks(),
        *_backend_checks(),
        *_framework_checks(),
        *_library_checks(),
        *_dataset_checks(),
        *_module_checks(),
        *_counter_checks(),
    ]
    usable = int(machine["usable_cpus"])
    peaks = {str(count): cpu.measure_peak_flops(count).flops_per_s for count in sorted({1, usable})}
    two = two_threads_over_one(cpu.measure_peak_flops) if usable > 1 else None
    advice = [*advice_for(machine), *poor_gain(two)]
    findings = check_noise() if noise else []
    return Diagnosis(checks, machine, core.clock_cost_ns(), peaks, two, advice, findings)


def _core_checks() -> list[Check]:
    from timetrial import core

    found: list[Check] = []
    parts: dict[str, Callable[[], Any]] = {
        "timetrial-child": core.child_path,
        "timetrial-exec": core.exec_path,
        "runtime module": core.runtime_dir,
    }
    for name, find in parts.items():
        try:
            found.append(Check(name, "ready", str(find())))
        except (TimetrialError, OSError) as error:
            found.append(Check(name, "broken", str(error), "pip install --force-reinstall timetrial"))
    return found


def _backend_checks() -> list[Check]:
    from timetrial import contenders

    workload = Workload("mlp", "synthetic", 1, {})
    found = []
    for name in contenders.native_backends():
        try:
            contender = contenders.resolve(Case(name, workload), build=False)
            detail = f"{contender.kind}{f', {contender.isa}' if contender.isa else ''}: {contender.path}"
            found.append(Check(f"backend {name}", "ready", detail))
        except contenders.NotBuiltYet as waiting:
            found.append(Check(f"backend {name}", "ready", f"native: {waiting}"))
        except Unavailable as lacking:
            reason, _, cure = str(lacking).partition(": ")
            found.append(Check(f"backend {name}", "missing", reason, cure or None, STACKS))
        except TimetrialError as error:
            found.append(Check(f"backend {name}", "broken", str(error)))
    return found


def _framework_checks() -> list[Check]:
    """What is ready, a line each; everything else in one line with one cure."""
    from timetrial import environments

    found, lacking, broken = [], [], []
    for name, framework in environments.shipped_frameworks().items():
        state = environments.summary(framework)
        if state.ready:
            found.append(Check(f"framework {name}", "ready", ", ".join(state.ready)))
        lacking += [f"{name}@{version}" for version in state.lacking]
        broken += [f"{name}@{words}" for words in state.broken]
    if broken:
        cure = "timetrial frameworks check"
        found.append(Check("frameworks", "missing", f"broken: {'; '.join(broken)}", cure, FRAMEWORKS))
    if lacking:
        cheap = any(
            version.cheap and f"{name}@{version.version}" in lacking
            for name, framework in environments.shipped_frameworks().items()
            for version in framework.versions
        )
        cure = f"timetrial frameworks {'install --cheap' if cheap else 'list'}"
        words = f"not installed: {', '.join(lacking)}"
        found.append(Check("frameworks", "missing", words, cure, FRAMEWORKS))
    return found


def _library_checks() -> list[Check]:
    found = []
    for name, library in known_libraries().items():
        path = library.path()
        if path is None:
            found.append(Check(f"library {name}", "missing", library.words, library.cure, LIBRARIES))
        else:
            version = version_of(path)
            found.append(
                Check(f"library {name}", "ready", f"{path}{f', version {version}' if version else ''}")
            )
    return found


def _dataset_checks() -> list[Check]:
    """Those that packages bring; what is made here, or lies in a folder of the user's, is no matter of this
    machine."""
    from timetrial import datasets

    brought = [one for one in datasets.known_datasets().values() if one.sources]
    states = {one.name: datasets.state_of(one) for one in brought}
    found = [
        Check(f"dataset {name}", "ready", one.detail) for name, one in states.items() if one.state == "ready"
    ]
    lacking = [name for name, one in states.items() if one.state != "ready"]
    if lacking:
        cure = f"timetrial datasets install {' '.join(lacking)}"
        found.append(Check("data sets", "missing", f"not installed: {', '.join(lacking)}", cure, DATA))
    return found


def _module_checks() -> list[Check]:
    found = []
    for name, (module, extra, gain) in _MODULES.items():
        if importlib.util.find_spec(module) is None:
            cure = f"{sys.executable} -m pip install 'timetrial[{extra}]'"
            found.append(Check(name, "missing", f"the module {module} is not installed", cure, gain))
        else:
            found.append(Check(name, "ready", module))
    return found


def _counter_checks() -> list[Check]:
    """What can be counted, in a line; what cannot, in a line for each reason."""
    from timetrial.observing.counted import counted_here

    counters = counted_here()
    found = [Check(f"counter {one.name}", "ready", "counts") for one in counters if one.reason is None]
    for why in dict.fromkeys(one.reason for one in counters if one.reason):
        names = ", ".join(one.name for one in counters if one.reason == why)
        found.append(Check(names, "missing", why, gain=COUNTERS))
    return found
