"""The Python interpreters in which frameworks run, and what each has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.version import Version as Pep440

from timetrial.errors import InputError, Unavailable
from timetrial.paths import user_path

OLDEST = Pep440("3.6")  # of what runtime/ is written for
RUNTIME_FOLDER = Path(__file__).resolve().parent.parent / "runtime"


@dataclass(frozen=True)
class Interpreter:
    """One interpreter. `running`: the one that runs timetrial itself."""

    executable: Path
    running: bool
    is_python: bool = True  # some contenders run in another language's
    python_path: str = ""  # that its contenders get, for modules which lie in a folder of the user's

    def versions(self, modules: Iterable[tuple[str, str]]) -> dict[str, str | None]:
        """Module -> version of the distribution it comes from; None where there is no such module."""
        words = {module: f"{module}={distribution}" for module, distribution in modules}
        found = _look(self.executable, tuple(sorted(words.values())), self.python_path)["modules"]
        return {module: found[word] for module, word in words.items()}

    @property
    def version(self) -> str:
        """As in '3.11.7'; "" of what is no Python."""
        if not self.is_python:
            return ""
        return str(_look(self.executable)["version"])

    @property
    def distributions(self) -> dict[str, str]:
        """Name, as pip compares names -> version of everything that is installed."""
        found: dict[str, str] = _look(self.executable)["distributions"]
        return found

    @property
    def base(self) -> Path:
        """The interpreter that this one's virtual environment was made from, or itself."""
        look = _look(self.executable)
        named = Path(look["base"]) / f"python{'.'.join(look['version'].split('.')[:2])}"
        return named if named.is_file() else self.executable


def running_interpreter() -> Interpreter:
    """The one that runs timetrial itself."""
    return Interpreter(Path(sys.executable), running=True)


def find_interpreter(word: str | None) -> Interpreter:
    """A path, a command on PATH, or None for the running interpreter."""
    if word is None:
        return running_interpreter()
    found = shutil.which(str(user_path(word)))
    if found is None:
        inside = user_path(word) / "bin" / "python"
        cure = f"did you mean {inside}?" if inside.is_file() else "give a path or a command on PATH"
        raise InputError(f"python={word!r}: there is no such interpreter; {cure}")
    # Not resolved: the path of a virtual environment's python is what makes it one.
    executable = Path(found).absolute()
    return Interpreter(executable, running=executable == Path(sys.executable))


def check_runtime(interpreter: Interpreter) -> None:
    """Whether our side of a contender could run in it. Unavailable: it is no Python, too old, or has no
    NumPy."""
    version = interpreter.version
    if Pep440(version) < OLDEST:
        raise Unavailable(f"{interpreter.executable} is Python {version}; timetrial needs {OLDEST} or newer")
    if interpreter.versions([("numpy", "numpy")])["numpy"] is None:
        raise Unavailable(
            f"{interpreter.executable} has no NumPy, with which timetrial reads and writes arrays there: "
            f"{interpreter.executable} -m pip install numpy"
        )


def forget() -> None:
    """What was seen of interpreters: something was installed since."""
    _look.cache_clear()


def without_callers_python(environment: dict[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without what bends another interpreter, such as PYTHONPATH."""
    source = dict(os.environ if environment is None else environment)
    return {name: value for name, value in source.items() if not name.startswith("PYTHON")}


@lru_cache(maxsize=256)
def _look(executable: Path, words: tuple[str, ...] = (), python_path: str = "") -> dict[str, Any]:
    # The running interpreter's contenders get its sys.path, with everything the caller's environment put
    # there; those of another get neither that nor its user's site folder.
    own = executable == Path(sys.executable)
    command = [str(executable), *([] if own else ["-s"]), str(RUNTIME_FOLDER / "look.py"), *words]
    environment = dict(os.environ) if own else without_callers_python()
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if python_path:
        environment["PYTHONPATH"] = python_path
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env=environment
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        words_of_it = (getattr(error, "stderr", None) or str(error)).strip()
        raise Unavailable(f"{executable} is no working Python interpreter: {words_of_it[-300:]}") from error
    return answer
