"""The interpreters that frameworks run in: what each needs (data), where it lies, how it is made.

`catalog` reads frameworks/<name>/environment.toml, `locate` finds the interpreter of a `name@version`.
"""

from timetrial.environments.catalog import Framework, Version, framework_in, shipped_frameworks
from timetrial.environments.interpreters import Interpreter
from timetrial.environments.locate import Located, locate
from timetrial.environments.present import present

__all__ = [
    "Framework",
    "Interpreter",
    "Located",
    "Version",
    "framework_in",
    "locate",
    "present",
    "shipped_frameworks",
]
