"""The settings `openmp.*`: how the threads of an OpenMP runtime wait, and where they run.

A runtime reads them from its environment when it is loaded (OpenMP 5.2, chapter 21). With OMP_DISPLAY_ENV it
prints what it made of them, on standard error: every runtime of the process does, so a second one that has
another opinion shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from timetrial.records.model import Setting, SettingStatus

VARIABLES = {
    "openmp.wait_policy": "OMP_WAIT_POLICY",
    "openmp.proc_bind": "OMP_PROC_BIND",
    "openmp.places": "OMP_PLACES",
    "openmp.dynamic": "OMP_DYNAMIC",
}
NAMES = tuple(VARIABLES)
_ANNOUNCE = {"OMP_DISPLAY_ENV": "true"}
_SAID = re.compile(r"^\s*(?:\[host\] *)?(OMP_\w+) *= *'([^']*)'", re.MULTILINE)
_SOURCE = "OMP_DISPLAY_ENV, printed by each OpenMP runtime as it was loaded"


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
        effective, status = "no OpenMP runtime that says so", "ignored"
    else:
        effective = ", ".join(dict.fromkeys(values))
        heard = all(values) if name == "openmp.places" else set(values) == {asked}
        status = "applied" if heard else "ignored"
    return Setting(name=name, asked=asked, effective=effective, how_read=_SOURCE, status=status)
