"""Compiles a plug-in, once; everything that goes wrong is said in words with a cure."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from timetrial.building import store
from timetrial.building.plan import Plan
from timetrial.building.store import Say
from timetrial.contenders.plugins import describe_plugin
from timetrial.core.supervised import Supervised
from timetrial.errors import InputError, Unavailable
from timetrial.hashing import file_hash
from timetrial.workloads.cache import cannot_write

TIMEOUT_S = 900.0
_SHOWN_LINES = 6
_failed: dict[str, str] = {}  # key -> words: an experiment asks once per case, the compiler fails once


def tell(words: str) -> None:
    """One line on standard error: standard output belongs to results."""
    print(f"timetrial: {words}", file=sys.stderr, flush=True)


def ensure(plan: Plan, say: Say = tell, *, again: bool = False) -> Path:
    """The plug-in of a plan: from the cache, otherwise built now. `again`: also if it failed before.

    Unavailable: it cannot be built. InputError: the cache cannot be written.
    """
    found = store.lookup(plan)
    if found is not None:
        return found
    if plan.key in _failed and not again:
        raise Unavailable(_failed[plan.key])
    with store.locked(plan, say):
        found = store.lookup(plan)
        if found is not None:
            say(f"{plan.recipe.name} was built by the other process")
            return found
        say(f"building {plan.recipe.name} for {plan.target.name}, once: about {plan.recipe.seconds} s")
        try:
            return _build(plan)
        except Unavailable as error:
            _failed[plan.key] = str(error)
            raise


def _build(plan: Plan) -> Path:
    with store.workplace() as folder:
        made, log = folder / "plugin.so", folder / "log"
        status = _compile(plan, made, log)
        if status != 0 or not made.exists():
            raise Unavailable(_words_of_failure(plan, status, log))
        try:
            describe_plugin(made, file_hash(made), (plan.target.library,))
        except InputError as error:
            words = f"{plan.recipe.name} was built for {plan.target.name} but does not load: {error}"
            raise Unavailable(words) from error
        try:
            return store.install(plan, made)
        except OSError as error:
            raise cannot_write(error) from error


def _compile(plan: Plan, output: Path, log: Path) -> int:
    """The compiler's exit code; its words go to `log`."""
    command = plan.command(output)
    with log.open("w", encoding="utf-8") as words:
        words.write(f"$ {shlex.join(command)}\n")
        words.flush()
        try:
            with Supervised(
                command,
                cwd=output.parent,
                env={**os.environ, "LC_ALL": "C", "TMPDIR": str(output.parent)},
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
            ) as process:
                return process.wait(TIMEOUT_S)
        except OSError as error:
            raise Unavailable(f"{plan.recipe.name}: {command[0]} cannot be started ({error})") from error
        except subprocess.TimeoutExpired:
            words.write(f"error: the compiler was ended after {TIMEOUT_S:g} s\n")
            return 1


def _words_of_failure(plan: Plan, status: int, log: Path) -> str:
    kept = store.path_of(plan, ".log")
    shutil.copyfile(log, kept)
    lines = [line for line in log.read_text("utf-8", "replace").splitlines()[1:] if line.strip()]
    telling = [line for line in lines if re.search(r"\b(error|undefined reference|cannot find)\b", line)]
    shown = telling[:_SHOWN_LINES] or lines[-_SHOWN_LINES:] or ["(it said nothing)"]
    how = f"failed with exit code {status}" if status else "made no plug-in"
    if status < 0:
        how = f"ended with signal {-status}"
    said = f"{plan.recipe.name} could not be built for {plan.target.name}: the compiler {how}:"
    return "\n  ".join([said, *shown, f"all of it: {kept}"])
