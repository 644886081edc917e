"""The runtime in every CPython from 3.6 on that this machine has: its syntax, and whole launches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import packaging.version
import pytest
from launching import make_plan, words
from required import machine_skip
from shared import made_once

from timetrial.contenders import registry
from timetrial.environments.catalog import FRAMEWORKS_FOLDER
from timetrial.environments.marker import FILE as MARKER
from timetrial.environments.marker import environments_folder
from timetrial.launch import run_launch
from timetrial.records import store
from timetrial.workloads.cache import cache_folder

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted"
SOURCES = [
    *registry.RUNTIME_FOLDER.glob("*.py"),
    *FRAMEWORKS_FOLDER.glob("*/*.py"),
    *PLANTED.glob("*.py"),
]
_ASK = (
    "import sys, platform\n"
    "try:\n    import numpy\n    found = 1\n"
    "except ImportError:\n    found = 0\n"
    "print(platform.python_implementation(), sys.version_info[0], sys.version_info[1], found)"
)
# ast and not compileall: nothing is written beside the sources.
_PARSE = """
import ast, io, sys
for path in sys.argv[1:]:
    ast.parse(io.open(path, encoding="utf-8").read(), path)
print("parsed")
"""


def _answer(python: Path) -> tuple[str, bool] | None:
    """'3.8' and whether it has NumPy; None: no CPython that the runtime is for."""
    done = subprocess.run([str(python), "-c", _ASK], capture_output=True, text=True, check=False)
    answer = done.stdout.split()
    if len(answer) != 4 or answer[0] != "CPython" or (int(answer[1]), int(answer[2])) < (3, 6):
        return None
    return f"{answer[1]}.{answer[2]}", answer[3] == "1"


def _interpreters() -> dict[str, tuple[Path, bool]]:
    """Version -> (one interpreter of it, whether it has NumPy): the running one, those of the environments of
    frameworks, those on PATH, those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [Path(sys.executable)]
    candidates += [
        marker.parent / "bin" / "python" for marker in sorted(environments_folder().glob(f"*/{MARKER}"))
    ]
    for folder in [*map(Path, os.get_exec_path()), *sorted(pyenv.glob("*/bin"))]:
        if folder.is_dir():
            candidates += sorted(p for p in folder.iterdir() if re.fullmatch(r"python3(\.\d+)?", p.name))
    found: dict[str, tuple[Path, bool]] = {}
    for python in candidates:
        answer = _answer(python) if python.is_file() else None
        if answer is None:
            continue
        version, has_numpy = answer
        if version not in found or (has_numpy and not found[version][1]):
            found[version] = (python, has_numpy)
    return found


INTERPRETERS = _interpreters()


def _launched() -> list[object]:
    """One parameter per version. Three are for every day: the running one, the oldest and the newest of those
    that need no NumPy installed."""
    ready = [version for version, (_, has_numpy) in INTERPRETERS.items() if has_numpy]
    ready.sort(key=packaging.version.parse)
    everyday = {f"{sys.version_info[0]}.{sys.version_info[1]}", *ready[:1], *ready[-1:]}
    return [
        pytest.param(version, marks=[] if version in everyday else [pytest.mark.full])
        for version in INTERPRETERS
    ]


def _with_numpy(version: str) -> Path:
    """An interpreter of this version with NumPy; one that lacks it gets an environment of its own, kept in
    the cache, or the test is skipped where there is no wheel to be had."""
    python, has_numpy = INTERPRETERS[version]
    if has_numpy:
        return python

    def make(folder: Path) -> None:
        subprocess.run([str(python), "-m", "venv", str(folder)], check=True)
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            "numpy",
        ]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = f"{python} has no NumPy, and pip has none for it: {done.stderr.strip()[-200:]}"
            pytest.skip(machine_skip(why))

    return made_once(cache_folder() / "tests" / f"numpy-{version}", make) / "bin" / "python"


@pytest.mark.parametrize("version", INTERPRETERS)
def test_the_syntax_is_old_enough(version: str) -> None:
    python, _ = INTERPRETERS[version]
    done = subprocess.run(
        [str(python), "-c", _PARSE, *map(str, SOURCES)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "parsed\n", done.stderr


@pytest.mark.parametrize("version", _launched())
def test_a_proof_and_a_timed_launch(version: str, tmp_path: Path) -> None:
    python = _with_numpy(version)
    settings = {"python": str(python)}
    proof = run_launch(make_plan(tmp_path / "proof", str(PLANTED), settings=settings, purpose="proof"))
    assert proof.outcome == "ok", words(proof)
    assert proof.parity is not None
    assert proof.parity.status == "passed"
    timed = run_launch(make_plan(tmp_path / "timed", str(PLANTED), settings=settings, proof=proof.parity))
    assert timed.outcome == "ok", words(timed)
    kinds = {segment.kind for segment in timed.segments}
    assert {"first", "steady", "judged"} <= kinds <= {"first", "warmup", "steady", "judged"}
    setting = next(setting for setting in timed.settings if setting.name == "python")
    assert setting.effective == str(python)


@pytest.mark.effect("python")
@pytest.mark.parametrize("version", _launched())
def test_a_step_of_the_users_own(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "import sys\ndef make():\n    return lambda: float(sys.version_info[1])\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = {"python": str(_with_numpy(version))}
    record = run_launch(make_plan(tmp_path / "launch", "mine:make", settings=settings))
    assert record.outcome == "ok", words(record)
    losses = store.read_losses(tmp_path / "launch")
    assert set(losses) == {float(version.split(".")[1])}
