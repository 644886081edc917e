"""Makes environments: an interpreter, a virtual environment, the pins, a check, and then the marker.

Whatever happens on the way, a half-made environment has no marker: it is never used, and the next
installation begins by removing it. One process at a time makes an environment; others wait for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from timetrial.environments import marker as markers
from timetrial.environments.catalog import Framework, Version
from timetrial.environments.checking import problem_of
from timetrial.environments.interpreters import find_interpreter, forget
from timetrial.environments.locate import in_current, install_command, interpreter_of
from timetrial.environments.making import Wishes, adopt, make, silent
from timetrial.environments.marker import (
    Marker,
    environment_folder,
    environments_folder,
    python_of,
    read_marker,
    write_marker,
)
from timetrial.environments.needs import Lacking
from timetrial.errors import InputError, TimetrialError

NOT_THERE = "is not installed"


@dataclass(frozen=True)
class Installed:
    """What came of it. `how`: "made", "was there", "current", "adopted"."""

    how: str
    python: Path
    seconds: float


def install(framework: Framework, version: Version, wishes: Wishes) -> Installed:
    """Brings a version of a framework onto this machine, if it is not here yet.

    InputError: the wishes contradict it. Unavailable: this machine cannot have it, or it does not work.
    """
    started = time.monotonic()
    _check_wishes(framework, version, wishes)
    if framework.stands_alone:
        return Installed("current", Path(sys.executable), 0.0)
    folder = environment_folder(framework, version)
    plain = not (wishes.adopt or wishes.path or wishes.python or wishes.wheels)
    if plain and read_marker(folder) is None:
        current = in_current(framework, version)
        if current is not None:
            return Installed("current", current.interpreter.executable, time.monotonic() - started)
    with _locked(folder, wishes) as lock:
        had = read_marker(folder)
        if had is not None and not wishes.adopt and _is_good(framework, version, folder, had, wishes):
            return Installed("was there", python_of(folder, had), time.monotonic() - started)
        marker = (
            adopt(framework, version, folder, wishes)
            if wishes.adopt
            else make(framework, version, folder, wishes, lock)
        )
        write_marker(folder, marker)
        forget()
        how = "adopted" if wishes.adopt else "made"
        return Installed(how, python_of(folder, marker), time.monotonic() - started)


def _check_wishes(framework: Framework, version: Version, wishes: Wishes) -> None:
    name = framework.word(version)
    if wishes.path and not version.user_path:
        raise InputError(f"--path {wishes.path}: {name} comes from packages and needs no folder of yours")
    if version.user_path and not wishes.path and read_marker(environment_folder(framework, version)) is None:
        raise Lacking(f"it needs {version.user_path}", install_command(framework, version))
    if version.program and (wishes.python or wishes.adopt or wishes.wheels):
        raise InputError(f"{name} runs in no Python: --python, --adopt and --wheels do not apply")


def _is_good(framework: Framework, version: Version, folder: Path, marker: Marker, wishes: Wishes) -> bool:
    """Whether what is there is what is wanted, and works."""
    if wishes.path and wishes.path.absolute() != Path(marker.path or "/"):
        return False
    if marker.pins is not None and not marker.adopted and marker.pins != version.pins:
        wishes.say("its pins have changed: making it anew")
        return False
    if wishes.python and marker.python_version not in ("", find_interpreter(wishes.python).version):
        wishes.say("it is of another Python: making it anew")
        return False
    wishes.say("checking what is there")
    problem = check_environment(framework, version, folder, marker)
    if problem is not None:
        wishes.say(f"broken, making it anew: {problem}")
    return problem is None


def check_environment(framework: Framework, version: Version, folder: Path, marker: Marker) -> str | None:
    """What is wrong with an environment that has a marker; None: it works."""
    python = python_of(folder, marker)
    if not python.is_file():
        return f"{python} is gone"
    path = Path(marker.path) if marker.path else None
    if path is not None and not path.exists():
        return f"{path} is gone"
    if marker.pins is not None and not marker.adopted and marker.pins != version.pins:
        return "it was made from other pins than those of today"
    return problem_of(
        framework, version, interpreter_of(version, python, path), path, pinned=not marker.adopted
    )


def remove(framework: Framework, version: Version, say: Callable[[str], None] = silent) -> str:
    """Removes an environment, or the registration of an adopted one. What was done, in words."""
    folder = environment_folder(framework, version)
    if not folder.exists():
        return NOT_THERE
    with _locked(folder, Wishes(say=say)):
        marker = read_marker(folder)
        # The marker first: from now on it is half-made, whatever happens.
        (folder / markers.FILE).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    forget()
    if marker is not None and marker.adopted:
        return f"no longer registered; {marker.python} is untouched"
    return "removed"


@contextlib.contextmanager
def _locked(folder: Path, wishes: Wishes) -> Iterator[int]:
    """One process per environment; the kernel frees the lock of one that dies, and of what it had started."""
    path = environments_folder() / "locks" / folder.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TimetrialError(f"cannot write {path.parent}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wishes.say(f"waiting: another process is at {folder.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)
