"""A step of the user's own as it is in a commit, beside the working tree: where it is imported from, what is
refused before anything starts, and what is kept."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launching import SHORT
from typer.testing import CliRunner

from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.cli.main import app
from timetrial.contenders import Contender, resolve, revisions
from timetrial.contenders.revisions import base_keys
from timetrial.environments import find_interpreter
from timetrial.errors import InputError
from timetrial.launch import LaunchPlan, run_launch
from timetrial.processes.lock import MeasurementLock
from timetrial.records.model import LaunchRecord
from timetrial.workloads import prepare

Write = Callable[..., Path]
NOTHING = Workload(NO_NETWORK, NO_NETWORK, None, {})
STEP = "def make_step():\n    return lambda: {value}.0\n"


def git(*words: str, folder: Path | None = None) -> str:
    own = ("-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "init.defaultBranch=main")
    command = ["git", *own, "-c", "protocol.file.allow=always", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A repository with a package in one commit, whose working tree differs from it; writes more files."""
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    project("mypkg/__init__.py", "")
    project("mypkg/training.py", STEP.format(value=1))
    project("sub/other.txt", "")
    git("init")
    git("add", ".")
    git("commit", "-m", "first step")
    project("mypkg/training.py", STEP.format(value=2))
    return project


def find(revision: str = "main", word: str = "mypkg.training:make_step", **settings: str) -> Contender:
    keys = base_keys(revision, None, find_interpreter(None))
    return resolve(Case(word, NOTHING, settings={**keys, **settings}))


def launch(tmp_path: Path, purpose: Any = "proof") -> LaunchRecord:
    """A launch of the revision main."""
    keys = base_keys("main", None, find_interpreter(None))
    plan = LaunchPlan(
        case=Case("mypkg.training:make_step", NOTHING, settings=keys),
        prepared=prepare(NOTHING, seed=1, epochs=1),
        purpose=purpose,
        folder=tmp_path / "launch",
        measure=dataclasses.replace(SHORT, max_steps=5),
    )
    return run_launch(plan)


# Where it is imported from. ---------------------------------------------------------------------------


def test_the_module_of_a_revision_is_the_committed_one(repository: Write, tmp_path: Path) -> None:
    contender = find()
    assert contender.path.read_text() == STEP.format(value=1)
    assert contender.path.is_relative_to(tmp_path / "cache")
    mine = resolve(Case("mypkg.training:make_step", NOTHING))
    assert mine.path == Path.cwd() / "mypkg" / "training.py"
    assert mine.fingerprint != contender.fingerprint


@pytest.mark.parametrize("revision", ["main", "HEAD", "v1", "COMMIT"])
def test_every_name_of_a_commit_is_the_same_one(repository: Write, revision: str) -> None:
    git("tag", "-a", "v1", "-m", "annotated")
    commit = git("rev-parse", "--short=12", "HEAD")
    word = git("rev-parse", "HEAD") if revision == "COMMIT" else revision
    assert base_keys(word, None, find_interpreter(None)) == {"revision": commit}


def test_the_path_of_another_checkout_is_taken_as_it_is(repository: Write, tmp_path: Path) -> None:
    other = tmp_path / "before"
    shutil.copytree(Path.cwd(), other)
    (other / "mypkg" / "training.py").write_text(STEP.format(value=3))
    assert find("../before").path == other / "mypkg" / "training.py"
    shutil.rmtree(other / ".git")
    shutil.rmtree(".git")
    assert find("../before").path == other / "mypkg" / "training.py"  # there needs to be no git


def test_from_a_folder_inside_it_is_imported_from_the_same_folder(
    repository: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository("src/inner.py", STEP.format(value=1))
    git("add", ".")
    git("commit", "-m", "a second package")
    monkeypatch.chdir("sub")
    monkeypatch.syspath_prepend(str(tmp_path / "project" / "src"))
    contender = find(word="inner:make_step")
    assert contender.tree is not None
    assert contender.path == contender.tree.folder / "src" / "inner.py"
    assert contender.tree.working_folder == contender.tree.folder / "sub"
    monkeypatch.chdir(tmp_path / "project")
    repository("new/file.txt", "")
    monkeypatch.chdir("new")
    assert find(word="inner:make_step").tree.working_folder == contender.tree.folder  # type: ignore[union-attr]


def test_packages_installed_inside_the_working_tree_stay(repository: Write) -> None:
    tree = find().tree
    assert tree is not None
    packages = Path.cwd() / ".venv" / "lib" / "python3.11" / "site-packages"
    assert tree.place(packages) == packages
    assert tree.place(Path.cwd() / "src") == tree.folder / "src"
    assert tree.place(Path("/usr/lib")) == Path("/usr/lib")


@pytest.mark.effect("revision")
def test_a_launch_runs_the_committed_step_in_its_folder(repository: Write, tmp_path: Path) -> None:
    repository("mypkg/training.py", "import os\nprint('in', os.getcwd())\n" + STEP.format(value=7))
    git("commit", "-am", "prints")
    repository("mypkg/training.py", "raise SystemExit('the working tree was imported')")
    record = launch(tmp_path)
    tree = find().tree
    assert record.outcome == "ok", record.reason
    assert tree is not None
    assert f"in {tree.folder}" in record.stdout
    assert record.facts["callable.file"] == str(tree.folder / "mypkg" / "training.py")
    setting = next(one for one in record.settings if one.name == "revision")
    assert (setting.status, setting.effective) == ("applied", tree.folder.name)
    assert record.facts["callable.module"] in setting.how_read


# What is refused, before anything starts. -------------------------------------------------------------


def refused(revision: str = "main", **settings: str) -> str:
    with pytest.raises(InputError) as raised:
        find(revision, **settings)
    return str(raised.value)


def test_a_revision_that_is_none(repository: Write, tmp_path: Path) -> None:
    git("branch", "feature")
    assert "has no such branch, tag or commit. Did you mean 'feature'?" in refused("featre")
    git("update-ref", "refs/remotes/origin/release", "HEAD")  # as actions/checkout leaves a base
    assert "Known: origin/release." in refused("release")
    assert "'--help': " in refused("--help")
    assert "there is no such folder" in refused("../nowhere")
    assert "is the working tree itself" in refused(".")
    assert "is the working tree itself" in refused("./sub")
    commit = git("rev-parse", "--short=12", "HEAD")
    with pytest.raises(InputError, match=f"revision=main may be another commit tomorrow: write {commit}"):
        resolve(Case("mypkg.training:make_step", NOTHING, settings={"revision": "main"}))
    with pytest.raises(InputError, match=r"revision=.* does not apply to backend 'eigen': it is no step"):
        resolve(Case("eigen", NOTHING, settings={"revision": commit}))


def test_without_a_repository_history_or_git(
    repository: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("commit", "-am", "second")
    git("clone", "--depth", "1", f"file://{Path.cwd()}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert "is a shallow clone, and does not have it" in refused("HEAD~1")
    assert "`fetch-depth: 0`" in refused("HEAD~1")
    monkeypatch.chdir(tmp_path)
    assert f"in {tmp_path} fails: fatal: not a git repository" in refused()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "fails: there is no `git` on PATH. A revision is of the git repository around" in refused()


def test_a_module_that_the_commit_lacks(repository: Write) -> None:
    repository("mypkg/later.py", STEP.format(value=2))
    said = refused(word="mypkg.later:make_step")
    assert "there is no module 'mypkg.later'" in said
    assert "Only committed files are in a revision." in said
    assert "callable 'mypkg.training:make_new', revision: the module 'mypkg.training' has no 'make_new'" in (
        refused(word="mypkg.training:make_new")
    )


def test_a_package_with_compiled_parts_needs_a_set_up(repository: Write, tmp_path: Path) -> None:
    repository(".gitignore", "*.so\n")
    repository("mypkg/native/_fast.so", "")
    said = refused()
    assert "mypkg/native/_fast.so is compiled, and" in said
    assert '--base-setup "pip install -e ."' in said
    tree = next((tmp_path / "cache").glob("v1/trees/*/*/mypkg"))
    (tree / "native").mkdir()
    (tree / "native" / "_fast.so").touch()  # as a set-up builds it
    assert find().path.parent == tree


def installed(tmp_path: Path, environment: Callable[..., Path], pth: str) -> Path:
    """An interpreter whose site-packages have a .pth with this line."""
    python = environment("env", "1.0")
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    shutil.rmtree(packages / "mypkg")
    (packages / "editable.pth").write_text(f"{pth}\n")
    file = str(Path.cwd() / "src" / "mypkg" / "__init__.py")
    (packages / "a_finder.py").write_text(
        "import importlib.util, sys\n\n\nclass Finder:\n    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n        if name == 'mypkg':\n"
        f"            return importlib.util.spec_from_file_location(name, {file!r})"
        "\n\n\nsys.meta_path.append(Finder)\n"
    )
    return python


@pytest.mark.parametrize(("pth", "is_refused"), [("{src}", False), ("import a_finder", True)])
def test_an_editable_install_does_not_lead_back_to_the_working_tree(
    repository: Write, tmp_path: Path, environment: Callable[..., Path], pth: str, is_refused: bool
) -> None:
    """By a folder on the path it is left out; what its finder would find is seen."""
    shutil.rmtree("mypkg")
    repository("src/mypkg/__init__.py", STEP.format(value=1))
    git("add", ".")
    git("commit", "-m", "src")
    python = installed(tmp_path, environment, pth.format(src=Path.cwd() / "src"))
    mine = resolve(Case("mypkg:make_step", NOTHING, settings={"python": str(python)}))
    assert mine.path == Path.cwd() / "src" / "mypkg" / "__init__.py"
    said = refused(word="mypkg:make_step", python=str(python))
    assert '--base-setup "pip install -e ."' in said or "there is no module 'mypkg'" in said
    assert (f"would be imported from {mine.path}, not from" in said) is is_refused


def test_what_was_imported_from_the_working_tree_by_other_means_is_a_mismatch(
    repository: Write, tmp_path: Path
) -> None:
    here = Path.cwd()
    repository("mypkg/helper.py", "VALUE = 1\n")
    repository(
        "mypkg/training.py",
        f"import sys\nsys.path.insert(0, {str(here / 'mypkg')!r})\nimport helper\n" + STEP.format(value=1),
    )
    git("add", ".")
    git("commit", "-m", "a path of its own")
    record = launch(tmp_path)
    assert record.outcome == "mismatch"
    assert f"'helper' was imported from the working tree ({here / 'mypkg' / 'helper.py'})" in str(
        record.reason
    )
    assert '--base-setup "pip install -e ."' in str(record.reason)


def test_what_a_step_imports_late_is_seen_too(repository: Write, tmp_path: Path) -> None:
    here = Path.cwd()
    repository("mypkg/helper.py", "VALUE = 1\n")
    text = "def make_step():\n    def step():\n        import sys\n        sys.path.insert(0, {!r})\n"
    repository(
        "mypkg/training.py", text.format(str(here / "mypkg")) + "        import helper\n    return step\n"
    )
    git("add", ".")
    git("commit", "-m", "late")
    record = launch(tmp_path, "speed")
    assert record.outcome == "mismatch"
    assert "'helper' was imported from the working tree" in str(record.reason)


@pytest.mark.parametrize("line", ["open('data.txt')", "import untracked"])
def test_untracked_files_are_not_there_and_it_says_so(repository: Write, tmp_path: Path, line: str) -> None:
    repository("mypkg/training.py", f"{line}\n" + STEP.format(value=1))
    git("commit", "-am", "needs it")
    repository("data.txt", "")
    repository("untracked.py", "")
    record = launch(tmp_path)
    assert record.outcome in ("crash", "unavailable")
    assert "only committed files are in a revision" in str(record.reason)


# What is kept. ----------------------------------------------------------------------------------------


def test_a_tree_is_kept_and_made_anew_when_it_is_not_what_it_was(repository: Write) -> None:
    path = find().path
    made = path.stat().st_ino
    assert find().path.stat().st_ino == made
    path.write_text("raise SystemExit('somebody edited it')")
    assert find().path.read_text() == STEP.format(value=1)
    shutil.rmtree(path.parents[1])  # git still lists it
    assert find().path.read_text() == STEP.format(value=1)
    (path.parents[1] / ".git").unlink()
    assert find().path.read_text() == STEP.format(value=1)
    assert git("worktree", "list").count("\n") == 1


def test_a_repository_that_moved_gets_trees_of_its_own(
    repository: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = find().path
    shutil.move(tmp_path / "project", tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    after = find().path
    assert after != before
    assert after.read_text() == STEP.format(value=1)
    shutil.copytree(tmp_path / "moved", tmp_path / "project")  # another one in the place of the first
    monkeypatch.chdir(tmp_path / "project")
    git("worktree", "prune")
    assert find().path.read_text() == STEP.format(value=1)


def test_work_trees_of_the_users_own_that_are_away_stay_listed(repository: Write, tmp_path: Path) -> None:
    git("worktree", "add", "--detach", str(tmp_path / "mine"))
    shutil.move(tmp_path / "mine", tmp_path / "unplugged")
    find()
    shutil.rmtree(find().path.parents[1])
    find()
    CliRunner().invoke(app, ["clean"])
    assert str(tmp_path / "mine") in git("worktree", "list")


def test_hooks_do_not_run_and_a_hooks_variables_do_not_lead_elsewhere(
    repository: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = repository(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert find().path.read_text() == STEP.format(value=1)
    assert not (tmp_path / "ran").exists()


def test_submodules_that_are_here_are_there(
    repository: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COUNT", "1"), ("KEY_0", "protocol.file.allow"), ("VALUE_0", "always")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    library = tmp_path / "library"
    library.mkdir()
    (library / "deep.py").write_text(STEP.format(value=1))
    git("init", folder=library)
    git("add", ".", folder=library)
    git("commit", "-m", "library", folder=library)
    git("submodule", "add", str(library), "vendor")
    git("commit", "-m", "a submodule")
    repository("vendor/deep.py", STEP.format(value=2))
    assert find(word="vendor.deep:make_step").path.read_text() == STEP.format(value=1)


def test_clean_removes_the_trees_and_what_git_lists(repository: Write, tmp_path: Path) -> None:
    tree = find().path.parents[1]
    with MeasurementLock():
        assert CliRunner().invoke(app, ["clean"]).exit_code == 2
    assert tree.is_dir()
    done = CliRunner().invoke(app, ["clean"])
    assert done.output == f"removed {tree}\n"
    assert not tree.exists()
    assert git("worktree", "list").count("\n") == 0
    assert CliRunner().invoke(app, ["clean"]).output == ""
    assert Path("mypkg/training.py").read_text() == STEP.format(value=2)


# Set-ups. ---------------------------------------------------------------------------------------------

SET_UP = "printf 'def make_step(): return None' > mypkg/built.py; pwd; which python"


def test_a_set_up_has_an_environment_of_its_own(
    repository: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, ran = revisions.run_logged, []

    def without_pip(command: list[Any], *rest: Any) -> bool:
        ran.append(command)
        return real([*command, "--without-pip"] if "venv" in command else command, *rest)

    monkeypatch.setattr(revisions, "run_logged", without_pip)
    keys = base_keys("main", SET_UP, find_interpreter(None))
    python = Path(keys["python"])
    assert f"timetrial: {SET_UP} (in " in capsys.readouterr().err
    contender = resolve(Case("mypkg.built:make_step", NOTHING, settings=keys))
    assert contender.interpreter is not None
    assert contender.interpreter.executable == python
    log = python.parents[1].with_suffix(".log").read_text()
    assert f"{contender.path.parents[1]}\n{python}\n" in log
    assert contender.interpreter.versions([("numpy", "numpy")])[
        "numpy"
    ]  # of the interpreter it was made with
    assert base_keys("main", SET_UP, find_interpreter(None)) == keys
    assert len(ran) == 2  # kept
    assert base_keys("main", "true", find_interpreter(None)) != keys
    with pytest.raises(InputError, match=r"--base-setup 'echo no compiler; false' failed in .* no compiler"):
        base_keys("main", "echo no compiler; false", find_interpreter(None))
    with pytest.raises(InputError, match="failed"):
        base_keys("main", "echo no compiler; false", find_interpreter(None))  # nothing half-made is kept
    with pytest.raises(InputError, match="is a checkout of yours, which is taken as it is"):
        base_keys(str(tmp_path), "true", find_interpreter(None))


@pytest.mark.full
def test_pip_installs_a_revision_for_an_interpreter_of_its_own(repository: Write, tmp_path: Path) -> None:
    repository(
        "setup.py",
        "from setuptools import setup\nsetup(name='mypkg', version='1', packages=['mypkg'])\n",
    )
    git("add", ".")
    git("commit", "-m", "installable")
    repository("mypkg/training.py", "raise SystemExit('the working tree was imported')")
    pytest.importorskip("setuptools")
    keys = base_keys("main", "pip install --no-build-isolation --no-deps -e .", find_interpreter(None))
    contender = resolve(Case("mypkg.training:make_step", NOTHING, settings=keys))
    assert contender.tree is not None
    assert contender.path == contender.tree.folder / "mypkg" / "training.py"
    found = subprocess.run(
        [keys["python"], "-c", "import mypkg, numpy; print(mypkg.__file__)"],
        capture_output=True, text=True, check=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert found.stdout.strip() == str(contender.tree.folder / "mypkg" / "__init__.py")
    assert sys.executable != keys["python"]
