"""Which interpreter a framework runs in: the one the case names, an installed environment, or our own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from timetrial.environments.catalog import CURRENT, Framework, Version
from timetrial.environments.interpreters import Interpreter, find_interpreter, running_interpreter
from timetrial.environments.marker import environment_folder, python_of, read_marker
from timetrial.environments.needs import Lacking
from timetrial.errors import Unavailable

Source = Literal["current", "installed", "named"]


@dataclass(frozen=True)
class Located:
    """A version of a framework and the interpreter that has it."""

    version: Version
    interpreter: Interpreter
    found: dict[str, str | None]  # module -> version
    source: Source
    path: Path | None = None  # of the user's own install, where the version needs one


def locate(framework: Framework, word: str, python: str | None) -> Located:
    """The interpreter of `framework@word`; word "" is the running interpreter if it has the framework, else
    the first version that is installed.

    InputError: no such version, no such interpreter. Unavailable: not here, with the cure.
    """
    version = framework.version(word) if word not in ("", CURRENT) else None
    if python is not None:
        return _drives(framework, version, find_interpreter(python), "named")
    if word == CURRENT or framework.stands_alone:
        return _drives(framework, None, running_interpreter(), "current")
    if version is not None:
        if read_marker(environment_folder(framework, version)) is None:
            return _exactly(framework, version)
        return _installed(framework, version)
    try:
        return _drives(framework, None, running_interpreter(), "current")
    except Unavailable as lacking:
        for installed in framework.versions:
            if read_marker(environment_folder(framework, installed)) is not None:
                return _installed(framework, installed)
        raise Lacking(str(lacking), install_command(framework, framework.versions[0])) from None


def in_current(framework: Framework, version: Version) -> Located | None:
    """The running interpreter, if it happens to have this very version."""
    if not version.modules:
        return None
    try:
        located = _drives(framework, version, running_interpreter(), "current")
    except Unavailable:
        return None
    return located if version.is_exactly(next(iter(located.found.values())) or "") else None


def _exactly(framework: Framework, version: Version) -> Located:
    located = in_current(framework, version)
    if located is None:
        raise Lacking(NOT_INSTALLED, install_command(framework, version))
    return located


def _drives(framework: Framework, asked: Version | None, interpreter: Interpreter, source: Source) -> Located:
    """In an interpreter that is not ours to fill: the version asked, or the one that drives what it has."""
    lacking: list[str] = []
    for version in framework.versions if asked is None else (asked,):
        if version.user_path or version.program:  # nothing but an installation says where it lies
            if asked is not None:
                raise Lacking(f"it needs {version.user_path}", install_command(framework, version))
            continue
        found = interpreter.versions(version.modules.items())
        missing = [module for module, has in found.items() if has is None]
        if missing:
            lacking += [module for module in missing if module not in lacking]
            continue
        main, has = next(iter(found.items()), ("", None))
        if asked or not version.modules or has == "unknown" or version.fits(has or ""):
            return Located(version, interpreter, found, source)
        words = f"{main} in a version that an adapter drives (it has {has})"
        if words not in lacking:
            lacking.append(words)
    needs = f"the module {', '.join(lacking)}" if lacking else "an installation of its own"
    raise Unavailable(f"{framework.name} needs {needs} in {interpreter.executable}")


def _installed(framework: Framework, version: Version) -> Located:
    folder = environment_folder(framework, version)
    marker = read_marker(folder)
    if marker is None:
        raise Lacking(NOT_INSTALLED, install_command(framework, version))
    anew = install_command(framework, version, marker.adopted)
    path = Path(marker.path) if marker.path else None
    if version.user_path and (path is None or not path.exists()):
        raise Lacking(f"broken: {path or version.user_path} is gone", anew)
    python = python_of(folder, marker)
    if not python.is_file():
        raise Lacking(f"broken: {python} is gone", anew)
    interpreter = interpreter_of(version, python, path)
    if version.program:
        return Located(version, interpreter, {}, "installed", path)
    try:
        found = interpreter.versions(version.modules.items())
    except Unavailable as broken:
        raise Lacking(f"broken: {broken}", anew) from None
    missing = [module for module, has in found.items() if has is None]
    if missing:
        raise Lacking(f"broken: {python} has no module {', '.join(missing)}", anew)
    return Located(version, interpreter, found, "installed", path)


NOT_INSTALLED = "not installed"


def interpreter_of(version: Version, executable: Path, path: Path | None) -> Interpreter:
    """The interpreter of an environment, with what its contenders can import."""
    return Interpreter(
        executable,
        running=executable == running_interpreter().executable,
        is_python=not version.program,
        python_path=version.variables(path=path).get("PYTHONPATH", ""),
    )


def install_command(framework: Framework, version: Version, adopted: bool = False) -> str:
    """What the user types to get it."""
    words = f"timetrial frameworks install {framework.word(version)}"
    if adopted:
        words += " --adopt PYTHON"
    if version.user_path:
        words += f" --path FOLDER ({version.user_path})"
    return words
