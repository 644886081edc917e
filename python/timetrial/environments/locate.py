"""Which interpreter a framework runs in: the one the case names, an installed environment, or our own."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from timetrial.environments.catalog import Framework, Version
from timetrial.environments.interpreters import Interpreter, find_interpreter
from timetrial.errors import Unavailable

CURRENT = "current"  # the word for the running interpreter as an environment
MARKER = "timetrial-environment.json"  # written last: an environment without it is not finished


@dataclass(frozen=True)
class Located:
    """A version of a framework and the interpreter that has it."""

    version: Version
    interpreter: Interpreter
    found: dict[str, str | None]  # module -> version
    source: Literal["current", "installed", "named"]
    path: Path | None = None  # of the user's own install, where the version needs one


def environments_folder() -> Path:
    """Where environments lie: TIMETRIAL_ENVIRONMENTS, or the user's data folder."""
    named = os.environ.get("TIMETRIAL_ENVIRONMENTS")
    return Path(named) if named else Path(platformdirs.user_data_dir("timetrial")) / "environments"


def environment_folder(framework: Framework, version: Version) -> Path:
    """Where an environment lies, whether or not it is there."""
    return environments_folder() / f"{framework.name}@{version.version}"


def locate(framework: Framework, word: str, python: str | None) -> Located:
    """The interpreter of `framework@word`; word "" is the running interpreter if it has the framework, else
    the first version that is installed.

    InputError: no such version, no such interpreter. Unavailable: not here, with the cure.
    """
    if python is not None:
        return _named(framework, word, find_interpreter(python), "named")
    if word == CURRENT or framework.versions[0].version == CURRENT:
        return _named(framework, "", find_interpreter(None), "current")
    if word:
        version = framework.version(word)
        try:
            return _installed(framework, version)
        except Unavailable as lacking:
            return _in_current(framework, version, lacking)
    try:
        return _named(framework, "", find_interpreter(None), "current")
    except Unavailable as lacking:
        for version in framework.versions:
            if (environment_folder(framework, version) / MARKER).is_file():
                return _installed(framework, version)
        first = framework.versions[0]
        raise Unavailable(f"{lacking}; {_cure(framework, first)}") from None


def _in_current(framework: Framework, version: Version, lacking: Unavailable) -> Located:
    """The running interpreter, if it happens to have this very version."""
    try:
        located = _named(framework, version.version, find_interpreter(None), "current")
    except Unavailable:
        raise lacking from None
    main = next(iter(located.found.values()), None)
    if main is None or not version.is_exactly(main):
        raise lacking
    return located


def _named(framework: Framework, word: str, interpreter: Interpreter, source: Any) -> Located:
    """In an interpreter that is not ours to fill: the version that drives what it has."""
    candidates = [framework.version(word)] if word else list(framework.versions)
    lacking: list[str] = []
    for version in candidates:
        found = interpreter.versions(tuple(version.modules.items()))
        missing = [module for module, has in found.items() if has is None]
        if missing:
            lacking += [module for module in missing if module not in lacking]
            continue
        main = next(iter(found.values()), None) or ""
        if word or not version.modules or version.fits(main) or main == "unknown":
            return Located(version, interpreter, found, source)
        lacking.append(f"{next(iter(found))} in a version that an adapter drives (it has {main})")
    raise Unavailable(f"{framework.name} needs the module {', '.join(lacking)} in {interpreter.executable}")


def _installed(framework: Framework, version: Version) -> Located:
    folder = environment_folder(framework, version)
    try:
        marker: dict[str, Any] = json.loads((folder / MARKER).read_text())
    except OSError:
        raise Unavailable(f"not installed; {_cure(framework, version)}") from None
    # An adopted environment is somebody else's: the marker says where it lies.
    python = Path(marker.get("python") or folder / "bin" / "python")
    if not python.is_file():
        raise Unavailable(f"{folder} is broken: {python} is gone; {_cure(framework, version)} makes it anew")
    interpreter = Interpreter(python, running=python == Path(sys.executable))
    found = interpreter.versions(tuple(version.modules.items()))
    missing = [module for module, has in found.items() if has is None]
    if missing:
        raise Unavailable(
            f"{python} has no module {', '.join(missing)}; {_cure(framework, version)} makes it anew"
        )
    path = Path(marker["path"]) if marker.get("path") else None
    return Located(version, interpreter, found, "installed", path)


def _cure(framework: Framework, version: Version) -> str:
    path = " --path FOLDER" if version.user_path else ""
    needs = f" ({version.user_path})" if version.user_path else ""
    return f"timetrial frameworks install {framework.name}@{version.version}{path}{needs}"
