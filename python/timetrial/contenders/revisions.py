"""Checkouts beside the working tree, from which a side of a race imports a step of the user's own.

<cache>/v1/trees/<repository>-<hash>/<commit>    a work tree of git's, kept
<commit>.made                                    beside it: its state when it was made; another one: made anew
<commit>-<hash>.env, .log                        the environment of a set-up, and what that said
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from timetrial.environments import Interpreter
from timetrial.environments.making import silent
from timetrial.environments.pip import run_logged
from timetrial.errors import InputError, nearest
from timetrial.paths import user_path
from timetrial.runtime.importing import ADVICE, INSTALLED, PACKAGES
from timetrial.workloads.cache import VERSION, cache_folder, cannot_write, recipe_key

SETTING = "revision"
MOST_FILES = 5  # of those that were changed
_LOCAL = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")  # set for a hook
_PACKAGES = f"import sys; print('\\n'.join(one for one in sys.path if one.endswith({PACKAGES})))"


@dataclass(frozen=True)
class Tree:
    """A checkout, and the working tree in whose place it stands."""

    folder: Path  # its top
    instead_of: Path  # top of the working tree

    def place(self, path: Path) -> Path:
        """The same place in this checkout, of what lies in the working tree and is no installed package's."""
        inside = path.is_relative_to(self.instead_of) and not path.is_relative_to(self.folder)
        installed = any(name in path.parts for name in INSTALLED)
        return self.folder / path.relative_to(self.instead_of) if inside and not installed else path

    @property
    def working_folder(self) -> Path:
        """The caller's, in this checkout."""
        own = self.place(Path.cwd())
        return own if own.is_dir() else self.folder

    def problem(self, file: Path) -> str | None:
        """Why a module that lies there is not, or not wholly, of this checkout; in words."""
        if not file.resolve().is_relative_to(self.folder):
            return f"it would be imported from {file}, not from {self.folder}; {ADVICE}"
        package = self.instead_of / file.resolve().parent.relative_to(self.folder)
        lacking = (
            one for one in package.rglob("*.so") if one != self.place(one) and not self.place(one).exists()
        )
        return next((f"{one} is compiled, and {self.folder} has none; {ADVICE}" for one in lacking), None)


def base_keys(revision: str, setup: str | None, interpreter: Interpreter) -> dict[str, str]:
    """The keys of a side whose step is imported from a revision, or from another checkout by its path: the
    commit, so that a branch may move, and the interpreter for which `setup`, a command, installed it.
    InputError: there is no git, no such revision or folder, or the command fails."""
    commit = _pinned(revision)
    tree = tree_of(commit).folder
    if setup is None:
        return {SETTING: commit}
    if commit.startswith("/"):
        raise InputError(f"--base-setup: {commit} is a checkout of yours, which is taken as it is.")
    key = recipe_key(SETTING, {"python": str(interpreter.executable), "setup": setup})[:8]
    environment = tree.with_name(f"{commit}-{key}.env")
    with _locked(tree):
        if not (environment / "made").is_file():
            _set_up(tree, environment, setup, interpreter)
            _made(tree).write_text(_state(tree) or "", "utf-8")  # the command may write into tracked files
    return {SETTING: commit, "python": str(environment / "bin" / "python")}


def tree_of(commit: str) -> Tree:
    """The checkout of a commit, made where it is not kept, or of a folder. InputError: it cannot be made."""
    here = _top(Path.cwd()) or Path.cwd()
    if commit != _pinned(commit):
        raise InputError(f"revision={commit} may be another commit tomorrow: write {_pinned(commit)}.")
    if commit.startswith("/"):
        return Tree(_top(Path(commit)) or Path(commit), here)
    tree = _folder() / f"{here.name}-{recipe_key(SETTING, {'of': str(here)})[:8]}" / commit
    made = _made(tree)
    with _locked(tree):
        if not made.is_file() or made.read_text("utf-8") != _state(tree):
            _check_out(here, commit, tree)
            made.write_text(_state(tree) or "", "utf-8")
    return Tree(tree, here)


def _made(tree: Path) -> Path:
    return tree.with_name(f"{tree.name}.made")


@contextmanager
def _locked(tree: Path) -> Iterator[None]:
    """One process at a time makes a checkout, or what stands beside it."""
    try:
        tree.parent.mkdir(parents=True, exist_ok=True)
        with tree.with_name(f"{tree.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise cannot_write(error) from error


def remove_all() -> list[Path]:
    """Takes the kept trees away, from git's lists too. Nothing else is pruned there."""
    found = [one.parent for one in sorted(_folder().glob("*/*/.git"))]
    for tree in found:
        _ask(tree, "worktree", "remove", "--force", "--force", str(tree))
    shutil.rmtree(_folder(), ignore_errors=True)
    return found


def described(top: Path) -> str:
    """'commit 1a2b3c4d5e6f (HEAD -> main: title), with changes that are in no commit: a.py'."""
    head = _ask(top, "log", "-1", "--format=%h%n%D%n%s", "--abbrev=12")
    if not head:
        return "in no repository"
    commit, *title = head.splitlines()
    words = f"commit {commit} ({': '.join(filter(None, title))})"
    changed = [line[3:] for line in _changed(top).splitlines()]
    more = ", ..." if len(changed) > MOST_FILES else ""
    files = f", with changes that are in no commit: {', '.join(changed[:MOST_FILES])}{more}"
    return words + (files if changed else "")


def _pinned(word: str) -> str:
    folder, here = user_path(word).resolve(), Path.cwd()
    if word.startswith(("/", ".", "~")) or (folder.is_dir() and _commit(here, word) is None):
        if not folder.is_dir():
            raise InputError(f"revision '{word}': there is no such folder.")
        if (_top(folder) or folder) == (_top(here) or here):
            raise InputError(f"revision '{word}' is the working tree itself; expected another checkout.")
        return str(folder)
    top = _git(here, "rev-parse", "--show-toplevel")
    commit = _commit(here, word)
    if commit is None and _ask(here, "rev-parse", "--is-shallow-repository") == "true":
        raise InputError(
            f"revision '{word}': {top} is a shallow clone, and does not have it. Fetch the history: git "
            "fetch --unshallow; in GitHub Actions `fetch-depth: 0` of actions/checkout."
        )
    if commit is None:
        names = _git(here, "for-each-ref", "--format=%(refname:short)").split()
        near = nearest(word, [name for name in names if name.endswith(f"/{word}")] or names)
        raise InputError(f"revision '{word}': {top} has no such branch, tag or commit.{near}")
    return commit


def _check_out(top: Path, commit: str, tree: Path) -> None:
    """The work tree, without what an earlier one left, and with the submodules that the working tree has.
    Nothing is pruned: the repository may have work trees of the user's on a disk that is away."""
    for old in (tree, *tree.parent.glob(f"{commit}-*.env")):
        shutil.rmtree(old, ignore_errors=True)
    _git(top, "worktree", "add", "--detach", "--force", "--force", str(tree), commit)
    used = [
        line[1:].split()[1]
        for line in (_ask(top, "submodule", "status") or "").splitlines()
        if line[0] != "-"
    ]
    modules = [name for name in used if (tree / name).is_dir()]
    if modules:
        _git(tree, "submodule", "update", "--init", "--recursive", "--", *modules)


def _set_up(tree: Path, environment: Path, setup: str, interpreter: Interpreter) -> None:
    """An environment that has the interpreter's packages behind its own, and the command in it."""
    log, bins = environment.with_suffix(".log"), environment / "bin"
    print(f"timetrial: {setup} (in {tree}; what it says: {log})", file=sys.stderr, flush=True)
    shutil.rmtree(environment, ignore_errors=True)
    environment.mkdir()
    try:
        found = subprocess.run(
            [interpreter.executable, "-c", _PACKAGES], capture_output=True, text=True, check=True
        )
    except subprocess.SubprocessError as error:
        raise InputError(f"--base-setup: {interpreter.executable} does not run: {error}") from error
    is_made = run_logged([interpreter.executable, "-I", "-m", "venv", environment], log, environment, silent)
    for own in environment.glob("lib/python*/site-packages"):
        (own / "behind.pth").write_text(found.stdout, "utf-8")
        for old in (*own.glob("setuptools*"), own / "_distutils_hack"):  # of venv's, before the interpreter's
            shutil.rmtree(old, ignore_errors=True)
        (own / "distutils-precedence.pth").unlink(missing_ok=True)
    first = f'cd {shlex.quote(str(tree))}; export PATH={shlex.quote(str(bins))}:"$PATH"'
    command = ["/bin/sh", "-ec", f"{first} VIRTUAL_ENV={shlex.quote(str(environment))}; {setup}"]
    if not is_made or not run_logged(command, log, environment, silent):
        said = " ".join(log.read_text("utf-8", errors="replace").split())[-300:]
        raise InputError(f"--base-setup {setup!r} failed in {tree}: ...{said} (all that it said: {log})")
    (environment / "made").touch()


def _folder() -> Path:
    return cache_folder().resolve() / VERSION / "trees"


def _top(folder: Path) -> Path | None:
    """Of the checkout around a folder; None: there is none, or no git."""
    found = _ask(folder, "rev-parse", "--show-toplevel")
    return Path(found) if found else None


def _commit(folder: Path, word: str) -> str | None:
    return _ask(folder, "rev-parse", "--short=12", "--verify", "--end-of-options", f"{word}^{{commit}}")


def _changed(top: Path) -> str:
    return _git(top, "status", "--porcelain", "--untracked-files=no")


def _state(tree: Path) -> str | None:
    """Its commit and changed files; None: it is no work tree, or its repository is elsewhere now."""
    head = _ask(tree, "rev-parse", "HEAD") if (tree / ".git").is_file() else None
    return head and f"{head}\n{_changed(tree)}"


def _ask(folder: Path, *words: str) -> str | None:
    """What git says; None: it fails, or there is none."""
    try:
        return _git(folder, *words)
    except InputError:
        return None


def _git(folder: Path, *words: str) -> str:
    """What git says, without the user's hooks. InputError: it fails, or there is none."""
    environment = {name: value for name, value in os.environ.items() if name not in _LOCAL}
    environment.update(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C.UTF-8")
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *words]
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=True,
        ).stdout.rstrip("\n")  # fmt: skip
    except FileNotFoundError:
        said = "there is no `git` on PATH"
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip() or "nothing").splitlines()[-1]
    raise InputError(
        f"`git {' '.join(words[:2])}` in {folder} fails: {said}. A revision is of the git repository around "
        "the working directory; another checkout is given by its path."
    )
