"""Finds an interpreter for a range of versions: ours, PATH, pyenv, uv, conda, or the one the user names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version as Pep440

from timetrial.environments.interpreters import find_interpreter, running_interpreter, without_callers_python
from timetrial.environments.needs import Lacking
from timetrial.errors import InputError

MINORS = range(6, 20)
_ASK = """
import platform, sys, sysconfig
print(platform.python_implementation(), platform.python_version(), sys.maxsize > 2**32,
      bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
import ensurepip, venv
print("venv")
"""


@dataclass(frozen=True)
class Candidate:
    """A CPython that was found. `where`: "running", "PATH", "pyenv", "uv", "conda", "named"."""

    executable: Path
    version: str
    where: str
    makes_environments: bool  # has venv and ensurepip, which Debian packages apart


def fitting(wanted: str) -> Candidate:
    """The interpreter to make an environment with: our own if it fits, else the newest that does.

    Lacking: none fits.
    """
    inside = [one for one in candidates() if fits(wanted, one.version)]
    able = [one for one in inside if one.makes_environments]
    if able:
        return next((one for one in able if one.where == "running"), able[0])
    if inside:
        one = inside[0]
        raise _no_venv(one)
    found = sorted({short(one.version) for one in candidates()}, key=Pep440)
    raise Lacking(
        f"it needs Python {wanted}, and this machine has {', '.join(found) or 'none'}", cure(wanted)
    )


def named(word: str, wanted: str) -> Candidate:
    """The interpreter that the user names. InputError: there is none, or its version does not fit."""
    interpreter = find_interpreter(word)
    candidate = _ask(interpreter.executable, "named")
    if candidate is None:
        raise InputError(f"--python {word}: {interpreter.executable} is no working 64-bit CPython")
    if not fits(wanted, candidate.version):
        raise InputError(
            f"--python {word}: it is Python {candidate.version}, and the packages exist for {wanted}; "
            "without --python a fitting one is looked for"
        )
    if not candidate.makes_environments:
        raise _no_venv(candidate)
    return candidate


@lru_cache(maxsize=1)
def candidates() -> tuple[Candidate, ...]:
    """Every interpreter of this machine, one per version: the running one first, then the newest."""
    paths: dict[Path, str] = {}
    for path, where in _paths():
        paths.setdefault(path, where)
    with ThreadPoolExecutor(4) as pool:
        asked = list(pool.map(_ask, paths.keys(), paths.values()))
    found: dict[str, Candidate] = {}
    for one in asked:
        if one and (
            one.version not in found or one.makes_environments > found[one.version].makes_environments
        ):
            found[one.version] = one
    return tuple(sorted(found.values(), key=lambda one: Pep440(one.version), reverse=True))


def fits(wanted: str, version: str) -> bool:
    """Whether a version lies in a range; "" is every range."""
    return SpecifierSet(wanted).contains(Pep440(version), prereleases=True)


def cure(wanted: str) -> str:
    """The command that brings an interpreter of a range."""
    minor = next((n for n in reversed(MINORS) if fits(wanted, f"3.{n}.9") and fits("<3.14", f"3.{n}")), None)
    if minor is None:
        return f"install a Python {wanted}"
    if shutil.which("uv") and minor >= 8:  # uv has no older ones
        return f"uv python install 3.{minor}"
    return f"pyenv install 3.{minor}"


def short(version: str) -> str:
    """3.11 of 3.11.7."""
    return ".".join(version.split(".")[:2])


def _no_venv(one: Candidate) -> Lacking:
    return Lacking(
        f"{one.executable} (Python {one.version}) cannot make virtual environments",
        f"sudo apt install python{short(one.version)}-venv",
    )


def _paths() -> Iterator[tuple[Path, str]]:
    """Executables and where they were found, in the order of preference."""
    yield running_interpreter().base, "running"
    names = [f"python3.{minor}" for minor in reversed(MINORS)] + ["python3"]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in os.get_exec_path():
        if Path(folder) == pyenv / "shims":  # they stand for interpreters that are found below
            continue
        for name in names:
            path = Path(folder) / name
            # A virtual environment on PATH stands for the interpreter it was made from.
            if path.is_file() and not (path.parent.parent / "pyvenv.cfg").exists():
                yield path, "PATH"
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    for root, where in ((pyenv / "versions", "pyenv"), (uv, "uv")):
        for path in sorted(root.glob("*/bin/python3")):
            yield path, where
    active = os.environ.get("CONDA_PREFIX")
    conda = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", ".conda")
    for root in [*([Path(active)] if active else []), *(Path.home() / name for name in conda)]:
        for path in [*root.glob("bin/python3"), *sorted(root.glob("envs/*/bin/python3"))]:
            yield path, "conda"


@lru_cache(maxsize=256)
def _ask(executable: Path, where: str) -> Candidate | None:
    try:
        done = subprocess.run(
            [str(executable), "-I", "-c", _ASK],
            capture_output=True, text=True, timeout=30, env=without_callers_python(),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.splitlines()
    match = re.fullmatch(r"CPython (3\.\d+\.\S+) True (True|False)", lines[0]) if lines else None
    if match is None or match[2] == "True":  # the runtime module is for interpreters with a lock
        return None
    return Candidate(executable, match[1], where, "venv" in lines)
