"""Interpreters: found, asked, and old ones too; and pip's words, read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from timetrial.environments import Interpreter, discovery, pip
from timetrial.environments.interpreters import running_interpreter
from timetrial.errors import InputError, Unavailable

NO_VERSION = "Could not find a version that satisfies the requirement"


def test_the_running_one_is_preferred_and_others_are_the_newest_first() -> None:
    found = discovery.candidates()
    versions = [Version(one.version) for one in found]
    assert versions == sorted(set(versions), reverse=True)
    chosen = discovery.fitting(">=3.8")
    assert chosen.version == running_interpreter().version
    assert chosen.executable != Path(sys.executable) or sys.prefix == sys.base_prefix
    others = [one for one in found if one.where != "running" and one.makes_environments]
    if others:
        assert discovery.fitting(f"=={others[0].version}").executable == others[0].executable


@pytest.mark.parametrize("candidate", discovery.candidates(), ids=lambda one: one.version)
def test_every_interpreter_says_what_it_has(candidate: discovery.Candidate) -> None:
    """3.6 and 3.7 have no importlib.metadata."""
    asked = subprocess.run(
        [candidate.executable, "-I", "-m", "pip", "--version"], capture_output=True, text=True
    )
    has = asked.stdout.split()[1] if asked.returncode == 0 else None
    interpreter = Interpreter(candidate.executable, running=False)
    found = interpreter.versions([("pip", "pip"), ("no_such_module", "no-such")])
    assert found["no_such_module"] is None
    assert found["pip"] == has or has is None
    assert interpreter.version == candidate.version


def test_a_folder_in_the_way_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "caffe").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for running in (True, False):
        python = Path(sys.executable) if running else discovery.fitting(">=3.8").executable
        assert Interpreter(python, running).versions([("caffe", "caffe")]) == {"caffe": None}


def test_the_callers_path_does_not_reach_another_interpreter(
    tmp_path: Path, make_python: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stranger.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    other = Interpreter(make_python(), running=False)
    assert other.versions([("stranger", "stranger")]) == {"stranger": None}
    named = Interpreter(other.executable, running=False, python_path=str(tmp_path))
    assert named.versions([("stranger", "stranger")]) == {"stranger": "unknown"}


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "python3"
    program.write_text("#!/bin/sh\necho nonsense\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match="is no working 64-bit CPython"):
        discovery.named(str(program), ">=3.6")
    with pytest.raises(Unavailable, match="is no working Python interpreter"):
        _ = Interpreter(program, running=False).version


def test_an_interpreter_without_venv_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = discovery.Candidate(Path("/usr/bin/python3.11"), "3.11.2", "PATH", makes_environments=False)
    monkeypatch.setattr(discovery, "candidates", lambda: (bare,))
    with pytest.raises(
        Unavailable, match=r"cannot make virtual environments: sudo apt install python3\.11-venv"
    ):
        discovery.fitting(">=3.11")


def test_cures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert discovery.cure(">=3.8,<3.9") == "uv python install 3.8"
    assert discovery.cure(">=3.6,<3.8") == "pyenv install 3.7"  # uv has none so old
    monkeypatch.setattr(discovery.shutil, "which", lambda name: None)
    assert discovery.cure(">=3.12,<3.13") == "pyenv install 3.12"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Collecting numpy==1.16.6", "looking for numpy==1.16.6"),
        ("  Downloading a/b/numpy-1.16.6-cp37.whl (17.3 MB)", "downloading numpy-1.16.6-cp37"),
        ("Installing collected packages: numpy, scipy, theano", "unpacking 3 packages"),
        ("Requirement already satisfied: pip", None),
    ],
)  # fmt: skip
def test_what_pip_is_at(line: str, said: str | None) -> None:
    assert pip.describe(line) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"ERROR: {NO_VERSION} theano==1.9 (from versions: 0.6, 0.7, 0.8, 0.9, 1.0.5)\n"
            "ERROR: No matching distribution found for theano==1.9",
            "theano==1.9 does not exist: the package index has only 0.6 ... 0.8, 0.9, 1.0.5 for Python 3.7",
        ),
        (
            f"  {NO_VERSION} scipy==9 (from theano) (from versions: )",
            "the pin scipy==9 does not exist: the package index has nothing of that name for Python 3.7",
        ),
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
            f"ERROR: {NO_VERSION} x==1 (from versions: none)",
            "the package index cannot be reached",
        ),
        ("Installing\nOSError: [Errno 28] No space left on device", "the disk is full"),
        (
            "building\nerror: command 'gcc' failed\n[notice] a new pip",
            "pip failed: error: command 'gcc' failed",
        ),
        ("", "pip failed: without a word"),
    ],
)
def test_why_pip_failed(tmp_path: Path, text: str, said: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"$ pip install pip==1\nERROR: an earlier one\n$ pip install\n{text}\n")
    reason = str(pip.why_it_failed(log, "3.7", None))
    assert said in reason
    assert reason.endswith(f"(all that pip said: {log})")
