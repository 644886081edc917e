"""The workflow of docs/how-to/pytest.md: its commands, run as GitHub Actions runs them, on a pull request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stepping
import yaml

ROOT = Path(__file__).parents[2]
STEP = """def make_step():
    def step():
        for _ in range({work}):
            sum(range(100))

    return step
"""
SCRIPTED = f"""#!{sys.executable}
import sys

sys.path.insert(0, {str(ROOT / "tests")!r})
import stepping

import timetrial.races.racing
from timetrial.cli.main import main

timetrial.races.racing.real_engine = stepping.engine
main()
"""
REAL = f"#!{sys.executable}\nfrom timetrial.cli.main import main\n\nmain()\n"


def workflow() -> dict[Any, Any]:
    page = (ROOT / "docs" / "how-to" / "pytest.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n")[2].partition("\n```\n\n")[0]
    found: dict[Any, Any] = yaml.safe_load(text)
    return found


def git(*words: str) -> None:
    own = ("-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *own, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What actions/checkout leaves of a pull request to main: no branch, and the base as origin/main."""
    monkeypatch.chdir(tmp_path)
    git("init", "upstream")
    package = tmp_path / "upstream" / "mypackage"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "training.py").write_text(STEP.format(work=100))
    monkeypatch.chdir("upstream")
    git("add", ".")
    git("commit", "-m", "base")
    monkeypatch.chdir(tmp_path)
    git("clone", "upstream", "work")
    monkeypatch.chdir("work")
    git("checkout", "--detach")
    git("branch", "--delete", "main")
    (tmp_path / "work" / "mypackage" / "training.py").write_text(STEP.format(work=200))
    git("commit", "-am", "pull request")
    return tmp_path / "work"


def run_commands(folder: Path, timetrial: str, **variables: str) -> tuple[int, str]:
    """The exit code of the first command that fails, or 0; and the job's summary."""
    summary, tools = folder.parent / "summary.md", folder.parent / "bin"
    tools.mkdir()
    for name, text in (("timetrial", timetrial), ("pip", '#!/bin/sh\necho "$@" >> ../pip.log\n')):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_BASE_REF": "main",
        "GITHUB_STEP_SUMMARY": str(summary), "TIMETRIAL_CACHE": str(folder.parent / "cache"), **variables,
    }  # fmt: skip
    (job,) = workflow()["jobs"].values()
    for step in job["steps"]:
        if "run" in step:
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=folder, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                return done.returncode, summary.read_text() if summary.exists() else done.stderr
    return 0, summary.read_text()


def test_it_has_the_history_and_runs_on_pull_requests() -> None:
    found = workflow()
    (job,) = found["jobs"].values()
    assert found[True] == "pull_request"  # "on" is a truth value of YAML
    assert next(one for one in job["steps"] if "checkout" in one.get("uses", ""))["with"]["fetch-depth"] == 0


@pytest.mark.parametrize(("ratio", "code", "verdict"), [("0.5", 1, "slower"), ("1", 0, "same (within 5 %)")])
def test_its_commands_leave_the_verdict(checkout: Path, ratio: str, code: int, verdict: str) -> None:
    found, summary = run_commands(checkout, SCRIPTED, **{stepping.RATIO: ratio})
    assert found == code, summary
    assert summary.startswith("```\nrace · step time")
    assert summary.endswith("```\n")
    assert verdict in summary
    assert "mypackage/training.py, commit " in summary
    assert (checkout.parent / "pip.log").read_text() == "install -e . timetrial\n"


def test_without_the_history_it_fails(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git("clone", "--depth", "1", f"file://{checkout}", "shallow/work")
    found, summary = run_commands(tmp_path / "shallow" / "work", SCRIPTED, GITHUB_BASE_REF="release")
    assert found == 2
    assert "race" not in summary


@pytest.mark.full
@pytest.mark.alone
def test_its_commands_find_a_step_that_became_slower(checkout: Path) -> None:
    """Twice the work, measured."""
    found, summary = run_commands(checkout, REAL)
    assert found == 1, summary
    assert "slower" in summary
    assert "(HEAD: pull request)" in " ".join(summary.split())
