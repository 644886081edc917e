"""The settings `openmp.*`: how the threads of an OpenMP runtime wait, and where they run.

A runtime reads them from its environment when it is loaded (OpenMP 5.2, chapter 21). With OMP_DISPLAY_ENV it
prints what it made of them, on standard error: every runtime of the process does, so a second one that has
another opinion shows. For how long its threads spin before they sleep each runtime has a word of its own:
GNU's counts turns of a loop (GOMP_SPINCOUNT), LLVM's and Intel's milliseconds (KMP_BLOCKTIME); these are
printed by runtimes that have them only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from timetrial.errors import InputError
from timetrial.records.model import Setting, SettingStatus

SPIN_COUNT, BLOCKTIME = "openmp.spin_count", "openmp.blocktime"
VARIABLES = {
    "openmp.wait_policy": "OMP_WAIT_POLICY",
    "openmp.proc_bind": "OMP_PROC_BIND",
    "openmp.places": "OMP_PLACES",
    "openmp.dynamic": "OMP_DYNAMIC",
    SPIN_COUNT: "GOMP_SPINCOUNT",
    BLOCKTIME: "KMP_BLOCKTIME",
}
NAMES = tuple(VARIABLES)
FOREVER = "infinite"
# What a runtime prints for it, which is also the largest number that it keeps.
_FOREVER = {SPIN_COUNT: 2**64 - 1, BLOCKTIME: 2**31 - 1}
_OWNERS = {SPIN_COUNT: "GNU's OpenMP (libgomp)", BLOCKTIME: "LLVM's or Intel's OpenMP (libomp, libiomp5)"}
_ANNOUNCE = {"OMP_DISPLAY_ENV": "verbose"}  # else not what is a runtime's own
_SAID = re.compile(r"^\s*(?:\[host\] *)?((?:OMP|GOMP|KMP)_\w+) *= *'([^']*)'", re.MULTILINE)
_SOURCE = "OMP_DISPLAY_ENV, printed by each OpenMP runtime as it was loaded"

# Variables by which OpenMP's threads are bound.
BINDING = ("OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


# Settings and variables by which threads wait, and so perhaps never sleep.
_WAITING = {
    word for name in ("openmp.wait_policy", SPIN_COUNT, BLOCKTIME) for word in (name, VARIABLES[name])
}


def check(settings: Mapping[str, str]) -> None:
    """InputError for a value that a runtime would read as something else."""
    for name, most in _FOREVER.items():
        word = settings.get(name)
        if word is not None and word != FOREVER and not (word.isdecimal() and int(word) < most):
            raise InputError(f"{name}={word!r}: expected a whole number from 0 to {most - 1}, or {FOREVER}")


def variables_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for what is asked."""
    asked = {variable: settings[name] for name, variable in VARIABLES.items() if name in settings}
    return {**asked, **_ANNOUNCE} if asked else {}


def displayed(stderr: str) -> dict[str, list[str]]:
    """What the runtimes of a process printed: variable -> the value of each, in lower case."""
    found: dict[str, list[str]] = {}
    for variable, value in _SAID.findall(stderr):
        found.setdefault(variable, []).append(value.lower())
    return found


def judge(name: str, asked: str, said: Mapping[str, list[str]]) -> Setting:
    """By what every runtime printed. Places are printed as the processors that they are."""
    status: SettingStatus
    values = said.get(VARIABLES[name], [])
    if not values:
        owner = (
            f"no {_OWNERS[name]} is loaded" if said and name in _OWNERS else "no OpenMP runtime that says so"
        )
        effective, status = owner, "ignored"
    else:
        effective = ", ".join(dict.fromkeys(values))
        if name == "openmp.places":
            heard = all(values)
        elif name in _FOREVER:
            wanted = _FOREVER[name] if asked == FOREVER else int(asked)
            heard = {one.removesuffix("ms") for one in values} == {str(wanted)}
        else:
            heard = set(values) == {asked}
        status = "applied" if heard else "ignored"
    return Setting(name=name, asked=asked, effective=effective, how_read=_SOURCE, status=status)


def tells_how_to_wait(names: Collection[str]) -> bool:
    """Whether one of these settings and variables says for how long threads spin before they sleep."""
    return not _WAITING.isdisjoint(names)


def binds_threads(names: Collection[str]) -> bool:
    """Whether one of these settings and variables binds threads by the processors that they find as they
    start."""
    return not {*BINDING, "OMP_PLACES", "openmp.proc_bind", "openmp.places"}.isdisjoint(names)
