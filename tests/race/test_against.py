"""A race of a step of the user's own against itself in a revision: its sides, its words, its record."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import stepping
from typer.testing import CliRunner, Result

from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.races import RaceInterrupted, race, resume_race

STEP = "def make_step():\n    return lambda: {value}.0\n"
WORD = "mypkg.training:make_step"


def git(*words: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@localhost", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One commit on main, and a working tree that differs from it."""
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("timetrial.races.racing.real_engine", stepping.engine)
    folder = tmp_path / "project"
    (folder / "mypkg").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "mypkg" / "__init__.py").touch()
    (folder / "mypkg" / "training.py").write_text(STEP.format(value=1))
    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "-m", "first step")
    (folder / "mypkg" / "training.py").write_text(STEP.format(value=2))
    return folder


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["race", f"callable={WORD}", *words])


def test_the_working_tree_is_raced_against_the_revision(repository: Path) -> None:
    done = call("--against", "main", "--json")
    found = json.loads(done.stdout)
    commit = git("rev-parse", "--short=12", "main")
    assert (done.exit_code, found["verdict"]) == (1, "worse")
    assert (found["base"], found["challenger"]) == (f"{WORD} revision={commit}", WORD)
    assert found["again"] == f"timetrial race callable={WORD} seed=1 --against {commit}"
    base, mine = found["origins"][found["base"]], found["origins"][WORD]
    file, words = base.split(", commit ")
    assert Path(file).read_text() == STEP.format(value=1)
    assert words == f"{commit} (HEAD, main: first step)"
    assert mine == (
        f"{repository / 'mypkg' / 'training.py'}, commit {commit} (HEAD -> main: first step), with changes "
        "that are in no commit: mypkg/training.py"
    )


def test_the_report_says_from_where_each_side_was_imported(repository: Path) -> None:
    done = call("--against", "main", "--no-confirm")
    text = " ".join(done.stdout.split())
    assert f"{WORD} is {repository}/mypkg/training.py, commit " in text
    assert "with changes that are in no commit: mypkg/training.py" in text
    assert "mypkg/training.py, commit" in text
    folder = text.partition("records: ")[2].split()[0]
    shown = " ".join(CliRunner().invoke(app, ["show", folder]).stdout.split())
    assert f"{WORD} is {repository}/mypkg/training.py, commit " in shown


def test_again_races_the_same_commit_though_the_branch_moved(repository: Path) -> None:
    words = shlex.split(json.loads(call("--against", "main", "--json").stdout)["again"])[2:]
    git("commit", "-am", "slower")
    found = json.loads(CliRunner().invoke(app, ["race", *words, "--json"]).stdout)
    assert "revision=" in found["base"]
    assert Path(found["origins"][found["base"]].partition(", ")[0]).read_text() == STEP.format(value=1)
    assert found["origins"][WORD].endswith("(HEAD -> main: slower)")
    by_folder = json.loads(CliRunner().invoke(app, ["race", found["records"], "--json"]).stdout)
    assert by_folder["base"] == found["base"]


def test_from_python_a_word_or_a_function_that_can_be_imported(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = race(WORD, against="main", threads=1, results=tmp_path / "results", quiet=True)
    assert [case.settings.get("threads") for case in found.cases] == ["1", "1"]
    assert [", commit " in words for words in found.origins.values()] == [True, True]
    assert "  imported    " in found.explain()
    with pytest.raises(InputError, match="would be imported from"):
        race(lambda: None, against="main", results=tmp_path / "results", quiet=True)


def test_a_race_of_something_else_has_no_origins(repository: Path, tmp_path: Path) -> None:
    (repository / "other.py").write_text(STEP.format(value=3))
    found = race(WORD, "other:make_step", results=tmp_path / "results", quiet=True)
    assert found.origins == {}
    assert "origins" not in found.to_json()


def test_it_is_one_step(repository: Path) -> None:
    for words in ([f"callable={WORD},{WORD}"], [f"callable={WORD}", "malloc=keep,default"]):
        done = CliRunner().invoke(app, ["race", *words, "--against", "main"])
        assert done.exit_code == 2
        assert "Give one callable=package.module:function, and each key one value" in done.output


def test_what_it_is_not_for(repository: Path) -> None:
    done = CliRunner().invoke(app, ["race", "network=mlp", "backend=eigen", "--against", "main"])
    assert done.exit_code == 2
    assert "--against main races one step of your own against the same one there" in done.output
    done = call("--against", "mian")
    assert done.exit_code == 2
    assert "has no such branch, tag or commit" in done.output
    assert not Path("results").exists()
    done = call("--base-setup", "true")
    assert done.exit_code == 2
    assert "--against" in done.output


def test_a_step_that_is_not_of_the_working_tree_is_refused(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that is installed goes before the working directory."""
    installed = tmp_path / "site-packages"
    (installed / "mypkg").mkdir(parents=True)
    (installed / "mypkg" / "__init__.py").touch()
    (installed / "mypkg" / "training.py").write_text(STEP.format(value=3))
    monkeypatch.syspath_prepend(str(installed))
    done = call("--against", "main")
    assert done.exit_code == 2
    assert f"would be imported from {installed / 'mypkg' / 'training.py'}, not from" in done.output
    git("add", ".")
    monkeypatch.setattr("timetrial.contenders.revisions.Tree.problem", lambda self, file: None)
    done = call("--against", "main")
    assert done.exit_code == 2
    assert "your changes would not be raced. Install the package in editable mode" in done.output


def test_an_interrupted_race_goes_on_with_the_same_commit(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(plan: Any) -> None:
        if plan.purpose == "race" and plan.block == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stepping.Steps, "before", staticmethod(interrupted))
        with pytest.raises(RaceInterrupted) as ended:
            race(WORD, against="main", results=tmp_path / "results", quiet=True)
    git("commit", "-am", "slower")
    again = resume_race(ended.value.race.folder, quiet=True)
    assert again.verdict == "worse"
    assert again.record.experiment.cases[0].settings["revision"] == git("rev-parse", "--short=12", "HEAD~1")


def test_a_key_of_the_step_holds_for_both(repository: Path) -> None:
    done = call("--against", "main", "threads=1", "--json", "--no-confirm")
    record: Any = json.loads((Path(json.loads(done.stdout)["records"]) / "race.json").read_text())
    assert [case["settings"].get("threads") for case in record["experiment"]["cases"]] == ["1", "1"]
    assert ["revision" in case["settings"] for case in record["experiment"]["cases"]] == [True, False]
