"""The interpreters that frameworks run in: what each needs (data), where it lies, how it is made.

`catalog` reads frameworks/<name>/environment.toml, `locate` finds the interpreter of a `name@version`,
`install` makes it, `checking` starts what is there, `states` says how things stand.
"""

from timetrial.environments.catalog import (
    Framework,
    Version,
    find_framework,
    framework_in,
    shipped_frameworks,
)
from timetrial.environments.install import NOT_THERE, Installed, install, remove
from timetrial.environments.interpreters import Interpreter, check_runtime, find_interpreter
from timetrial.environments.locate import Located, install_command, locate
from timetrial.environments.making import Wishes
from timetrial.environments.marker import environments_folder
from timetrial.environments.needs import Lacking
from timetrial.environments.present import present
from timetrial.environments.states import READY, State, Summary, check, state_of, summary

__all__ = [
    "NOT_THERE",
    "READY",
    "Framework",
    "Installed",
    "Interpreter",
    "Lacking",
    "Located",
    "State",
    "Summary",
    "Version",
    "Wishes",
    "check",
    "check_runtime",
    "environments_folder",
    "find_framework",
    "find_interpreter",
    "framework_in",
    "install",
    "install_command",
    "locate",
    "present",
    "remove",
    "shipped_frameworks",
    "state_of",
    "summary",
]
