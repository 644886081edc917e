"""The runtime module in every CPython from 3.6 on that this machine has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from timetrial.core import runtime_dir

SCRIPT = Path(__file__).parent / "runtime_script.py"
_VERSION = (
    "import sys, platform; free = not getattr(sys, '_is_gil_enabled', lambda: True)(); "
    "print(platform.python_implementation(), sys.version_info[0], sys.version_info[1], int(free))"
)


def _version(python: Path) -> tuple[int, int] | None:
    """(3, minor) of a CPython that the module is for."""
    try:
        answer = subprocess.run(
            [python, "-c", _VERSION], capture_output=True, text=True, timeout=60, check=True
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    if len(answer) != 4 or answer[0] != "CPython" or answer[3] != "0":
        return None
    version = int(answer[1]), int(answer[2])
    return version if version >= (3, 6) else None


def _interpreters() -> dict[str, Path]:
    """One interpreter per version: the running one first, then PATH, then pyenv's."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    folders += sorted(pyenv.glob("*/bin"))
    candidates = [Path(sys.executable)]
    for folder in folders:
        if folder.is_dir():
            candidates += sorted(p for p in folder.iterdir() if re.fullmatch(r"python3(\.\d+)?", p.name))
    found: dict[str, Path] = {}
    for python in candidates:
        version = _version(python)
        if version is not None:
            found.setdefault(f"{version[0]}.{version[1]}", python)
    return found


INTERPRETERS = _interpreters()


@pytest.mark.parametrize("version", INTERPRETERS)
def test_runtime_module(version: str) -> None:
    result = subprocess.run(
        [INTERPRETERS[version], "-X", "faulthandler", SCRIPT, runtime_dir()],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={"PATH": os.environ["PATH"]},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == f"passed {version}\n"


def test_the_running_interpreter_is_among_them() -> None:
    assert INTERPRETERS[f"{sys.version_info[0]}.{sys.version_info[1]}"] == Path(sys.executable)
