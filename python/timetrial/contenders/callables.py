"""The user's own step: where its factory lies, and what can be said of it before anything starts."""

from __future__ import annotations

import difflib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timetrial.contenders.functions import shown
from timetrial.contenders.revisions import Tree
from timetrial.control.threads import VARIABLES
from timetrial.environments import Interpreter, Version
from timetrial.environments.catalog import CURRENT, SettingTable
from timetrial.environments.interpreters import RUNTIME_FOLDER, without_callers_python
from timetrial.errors import InputError, Unavailable, nearest

SETUP = "setup"  # the setting that names a function which is called before anything of the step is imported
# What every such contender has, read by whatever its code stands on. No setting is set unless asked; the
# variables are, unless `environment` has others: JAX keeps nothing by itself, numba beside the user's file.
OWN = Version(
    version=CURRENT,
    settings={
        "threads": SettingTable(environment=VARIABLES),
        "blas.core_type": SettingTable(environment=("OPENBLAS_CORETYPE",)),
        SETUP: SettingTable(),
    },
    environment={
        "TORCHINDUCTOR_CACHE_DIR": "{cache}/inductor",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TRITON_CACHE_DIR": "{cache}/triton",
        "JAX_COMPILATION_CACHE_DIR": "{cache}/jax",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "NUMBA_CACHE_DIR": "{cache}/numba",
    },
)
TIME_LIMIT_S = 60.0
_FEW = 12  # names that are worth a list


def find_callable(
    word: str, interpreter: Interpreter, sys_path: Sequence[str], key: str, tree: Tree | None = None
) -> Path | None:
    """The file of the module of "package.module:function"; None where the module is no file.

    Asks the interpreter itself, which reads the source and runs none of the user's code: a module may need
    the launch's environment, or take long. `sys_path`: what it imports from too. `key`: for the words.
    `tree`: the checkout that the module must be of.

    InputError: no such module, no such name, or one that cannot be a factory without arguments.
    """
    module, _, name = word.partition(":")
    folder = tree.working_folder if tree else Path.cwd()
    found = _look(interpreter, module, [*sys_path, str(folder)], tree)
    where = f"{key} '{shown(word)}'{', revision' if tree else ''}"
    if "missing" in found:
        raise InputError(
            f"{where}: there is no module '{found['missing']}'{_outside(found)}.{_near(found)} Looked in the "
            f"working directory {folder} and in what {interpreter.executable} imports from."
            f"{' Only committed files are in a revision.' if tree else ''}"
        )
    problem = tree.problem(Path(found.get("file") or "no file")) if tree else None
    if problem is not None:
        raise InputError(f"{where}: {problem}.")
    if "syntax" in found:
        raise InputError(f"{where}: Python {interpreter.version} cannot read it: {found['syntax']}")
    path = Path(found["file"]) if found.get("file") else None
    if "names" in found:
        _check_name(where, module, name.partition(".")[0], found, is_whole="." not in name)
    return path if path is not None and path.is_file() else None  # not in an archive


def _check_name(where: str, module: str, name: str, found: dict[str, Any], *, is_whole: bool) -> None:
    names = found["names"]
    what = names.get(name)
    if what is None:
        if found["dynamic"]:
            return
        functions = [one for one, kind in names.items() if kind["kind"] in ("function", "class", "value")]
        raise InputError(f"{where}: the module '{module}' has no '{name}'.{nearest(name, functions)}")
    if not is_whole:
        return
    if what["kind"] == "constant":
        raise InputError(f"{where}: '{name}' is no function; expected one that makes a step.")
    if what["kind"] == "coroutine":
        raise InputError(f"{where}: '{name}' is async; expected a plain function that makes a step.")
    if what.get("required"):
        raise InputError(
            f"{where}: '{name}' needs {', '.join(what['required'])}; expected a function that can be called "
            "without arguments. Give them defaults, or write a small function that calls it."
        )


def _outside(found: dict[str, Any]) -> str:
    return f" ('{found['plain']}' is a module, not a package)" if found.get("plain") else ""


def _near(found: dict[str, Any]) -> str:
    """Of thousands of modules, only those that are nearly called so; of a small package, all."""
    last, known = found["missing"].rpartition(".")[2], found["near"]
    if len(known) <= _FEW:
        return nearest(last, known)
    words = nearest(last, difflib.get_close_matches(last, known, n=3))
    return words if "Did you mean" in words else ""


def _look(interpreter: Interpreter, module: str, paths: Sequence[str], tree: Tree | None) -> dict[str, Any]:
    own = interpreter.running
    command = [str(interpreter.executable), *([] if own else ["-s"]), str(RUNTIME_FOLDER / "find.py"), module]
    environment = {**(dict(os.environ) if own else without_callers_python()), "PYTHONDONTWRITEBYTECODE": "1"}
    checkout = [str(tree.folder), str(tree.instead_of)] if tree else []
    try:
        done = subprocess.run(
            [*command, json.dumps(paths), "first" if own else "behind", *checkout],
            capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True, env=environment,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        raise Unavailable(f"{interpreter.executable} could not look for '{module}': {said[-300:]}") from error
    return answer
