"""The making itself: a virtual environment filled by pip, or the registration of what the user has."""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from timetrial.environments import discovery
from timetrial.environments.catalog import Framework, Version
from timetrial.environments.checking import problem_of
from timetrial.environments.interpreters import Interpreter, find_interpreter, forget
from timetrial.environments.locate import install_command, interpreter_of
from timetrial.environments.marker import Marker, environments_folder, read_marker
from timetrial.environments.needs import Lacking, check_room, check_system
from timetrial.environments.pip import run_logged, why_it_failed
from timetrial.errors import InputError, Unavailable


def silent(words: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class Wishes:
    """What the user said besides names."""

    python: str | None = None  # the interpreter to make it with
    wheels: Path | None = None  # a folder instead of the package index
    adopt: str | None = None  # the interpreter of an environment that the user has
    path: Path | None = None  # of the user's own install
    say: Callable[[str], None] = field(default=silent, compare=False)  # hears what is going on

    def __post_init__(self) -> None:
        if self.adopt and (self.python or self.wheels):
            raise InputError("--adopt takes an environment as it is: --python and --wheels do not apply")
        for option, folder in (("--wheels", self.wheels), ("--path", self.path)):
            if folder is not None and not folder.is_dir():
                raise InputError(f"{option} {folder}: there is no such folder")


def make(framework: Framework, version: Version, folder: Path, wishes: Wishes, lock: int) -> Marker:
    """An environment of our own."""
    check_system(version)
    had = read_marker(folder)
    path = wishes.path.absolute() if wishes.path else Path(had.path) if had and had.path else None
    if version.user_path and path is None:
        raise Lacking(f"it needs {version.user_path}", install_command(framework, version))
    if version.program:
        return _program(framework, version, folder, path)
    candidate = (
        discovery.named(wishes.python, version.python) if wishes.python else discovery.fitting(version.python)
    )
    if folder.exists():
        shutil.rmtree(folder)
    check_room(folder, version.size_mb)
    log = environments_folder() / "logs" / f"{folder.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    scratch = folder / ".scratch"  # on the same disk: /tmp may be small
    try:
        scratch.mkdir(parents=True)
        _fill(version, folder, candidate, wishes, log, scratch, lock)
        shutil.rmtree(scratch, ignore_errors=True)
        python = folder / "bin" / "python"
        wishes.say("checking")
        forget()
        problem = problem_of(framework, version, interpreter_of(version, python, path), path, pinned=True)
        if problem is not None:
            raise Unavailable(f"installed, and it does not work here: {problem}")
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise Unavailable(f"cannot make {folder}: {error}") from error
        raise
    return Marker(
        python_version=candidate.version,
        created=_now(),
        pins=version.pins,
        installed=Interpreter(python, False).distributions,
        path=str(path or ""),
        size_mb=_size_mb(folder),
    )


def _fill(
    version: Version,
    folder: Path,
    candidate: discovery.Candidate,
    wishes: Wishes,
    log: Path,
    scratch: Path,
    lock: int,
) -> None:
    def run(*command: str | Path) -> bool:
        return run_logged(command, log, scratch, wishes.say, keep_open=(lock,))

    wishes.say(f"virtual environment of {candidate.executable}")
    if not run(candidate.executable, "-I", "-m", "venv", folder):
        raise why_it_failed(log, candidate.version, wishes.wheels)
    pip = (folder / "bin" / "python", "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off")
    source = ("--no-index", "--find-links", wishes.wheels.absolute()) if wishes.wheels else ()
    for pins in ([f"pip=={version.pip}"] if version.pip else [], version.pins):
        if pins and not run(*pip, *source, *pins):
            raise why_it_failed(log, candidate.version, wishes.wheels)


def _program(framework: Framework, version: Version, folder: Path, path: Path | None) -> Marker:
    """A contender that is no Python: nothing is made, the user's own installation is registered."""
    if path is None:
        raise Unavailable("it has a program and no user_path (see frameworks/README.md)")
    python = path / version.executable
    if not python.is_file():
        raise Unavailable(f"{path} is not {version.user_path}: it has no {version.executable}")
    marker = Marker(python=str(python), created=_now(), path=str(path), adopted=True)
    problem = problem_of(framework, version, interpreter_of(version, python, path), path, pinned=False)
    if problem is not None:
        raise Unavailable(problem)
    shutil.rmtree(folder, ignore_errors=True)
    return marker


def adopt(framework: Framework, version: Version, folder: Path, wishes: Wishes) -> Marker:
    """An environment of the user's; only its registration lies in the folder."""
    interpreter = find_interpreter(wishes.adopt)
    if folder in interpreter.executable.parents:
        raise InputError(f"--adopt {wishes.adopt}: it is timetrial's own already")
    had = read_marker(folder)
    if had is not None and not had.adopted:
        name = framework.word(version)
        raise InputError(f"{name} is installed already; first: timetrial frameworks remove {name}")
    wishes.say(f"checking {interpreter.executable}")
    versions = interpreter.versions([*version.modules.items(), ("numpy", "numpy")])
    missing = [module for module, has in versions.items() if has is None]
    if missing:
        packages = " ".join(version.modules.get(module, module) for module in missing)
        raise Lacking(
            f"{interpreter.executable} has no module {', '.join(missing)}, which a contender needs",
            f"{interpreter.executable} -m pip install {packages}",
        )
    path = wishes.path.absolute() if wishes.path else None
    problem = problem_of(framework, version, interpreter, path, pinned=False)
    if problem is not None:
        raise Unavailable(f"it cannot be adopted: {problem}")
    shutil.rmtree(folder, ignore_errors=True)
    return Marker(
        python=str(interpreter.executable),
        python_version=interpreter.version,
        created=_now(),
        installed=interpreter.distributions,
        path=str(path or ""),
        adopted=True,
    )


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _size_mb(folder: Path) -> int:
    """What it takes on the disk."""
    return round(
        sum(
            os.lstat(os.path.join(place, name)).st_blocks * 512
            for place, _, names in os.walk(folder)
            for name in names
        )
        / 1e6
    )
