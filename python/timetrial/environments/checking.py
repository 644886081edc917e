"""Whether what is installed works: it starts in its interpreter, and its versions are those of the pins."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from timetrial.core import native
from timetrial.core.supervised import Supervised
from timetrial.environments.catalog import Framework, Version
from timetrial.environments.interpreters import RUNTIME_FOLDER, Interpreter
from timetrial.environments.needs import check_system
from timetrial.errors import Unavailable

TIME_LIMIT_S = 300.0  # as long as a contender may take to start


def problem_of(
    framework: Framework, version: Version, interpreter: Interpreter, path: Path | None, *, pinned: bool
) -> str | None:
    """What is wrong with it; None where a contender could start.

    `pinned`: every pin must be installed as it stands; otherwise the framework's version must be one that the
    adapter drives.
    """
    try:
        check_system(version)
        problem = None if version.program else _wrong_version(version, interpreter, pinned)
    except Unavailable as broken:
        return str(broken)
    return problem or _does_not_start(framework, version, interpreter, path)


def _wrong_version(version: Version, interpreter: Interpreter, pinned: bool) -> str | None:
    if pinned:
        wrong = version.differing(interpreter.distributions)
        return "; ".join(wrong) or None
    found = interpreter.versions(version.modules.items())
    missing = [module for module, has in found.items() if has is None]
    if missing:
        return f"{interpreter.executable} has no module {', '.join(missing)}"
    main, has = next(iter(found.items()), ("", ""))
    if has and has != "unknown" and not version.fits(has):
        drives = " or ".join(filter(None, [version.version, version.serves]))
        return f"{interpreter.executable} has {main} {has}, and the adapter drives {drives}"
    return None


def _does_not_start(
    framework: Framework, version: Version, interpreter: Interpreter, path: Path | None
) -> str | None:
    """A program that is no Python starts, or it does not: nothing more can be asked of it here."""
    with tempfile.TemporaryDirectory(prefix="timetrial-check-") as scratch:
        folder = Path(scratch)
        if version.program:
            return (
                None
                if os.access(interpreter.executable, os.X_OK)
                else f"{interpreter.executable} is no program"
            )
        task = folder / "task.json"
        adapter = framework.folder / version.adapter  # which a newcomer writes when the environment is there
        task.write_text(
            json.dumps(
                {
                    "runtime": str(native.runtime_dir()),
                    "modules": list(version.modules),
                    "adapter": str(adapter) if adapter.is_file() else None,
                    "mode": version.modes[0] if version.modes else None,
                    "user_path": str(path) if path else None,
                }
            )
        )
        command = [str(interpreter.executable), "-s", str(RUNTIME_FOLDER / "check.py"), str(task)]
        environment = _environment(version, folder, path, running=interpreter.running)
        return _answer(command, environment, folder)


def _environment(version: Version, folder: Path, path: Path | None, *, running: bool) -> dict[str, str]:
    """As a launch has it: nothing of the caller's, a home of its own."""
    made = {"PATH": os.environ.get("PATH") or os.defpath, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    if running and "PYTHONPATH" in os.environ:  # its contenders get the caller's path
        made["PYTHONPATH"] = os.environ["PYTHONPATH"]
    for name in ("home", "tmp", "cache"):
        (folder / name).mkdir()
    made.update(HOME=str(folder / "home"), TMPDIR=str(folder / "tmp"))
    made.update(version.variables(folder / "cache", path))
    return made


def _answer(command: list[str], environment: dict[str, str], folder: Path) -> str | None:
    log = folder / "output.txt"
    answers = folder / "answers.jsonl"
    with log.open("wb") as output, answers.open("wb") as said:
        status = None
        with Supervised(
            [*command, str(said.fileno())], pass_fds=(said.fileno(),), env=environment, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        ) as process, contextlib.suppress(subprocess.TimeoutExpired):  # fmt: skip
            status = process.wait(TIME_LIMIT_S)
    lines: list[dict[str, Any]] = [json.loads(line) for line in answers.read_text().splitlines()]
    failed = next((line for line in lines if "failed" in line), None)
    if failed:
        return f"importing {failed['failed']}: {failed['error']}: {_first_line(failed['words'])}"
    begun = next((line["trying"] for line in reversed(lines) if "trying" in line), None)
    if status == 0 and lines and lines[-1].get("finished"):
        return None
    last = log.read_text(errors="replace").strip().splitlines()
    words = f": {last[-1][-300:]}" if last else ""
    what = f"importing {begun}" if begun else "its interpreter"
    if status is None:
        return f"{what} takes longer than {TIME_LIMIT_S:.0f} s"
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"{what} ended the process {how}{words}"


def _first_line(words: str) -> str:
    """Some frameworks wrap the reason in a page of advice: the line that names a library, if one does."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    named = [line for line in lines if "cannot open shared object" in line or "undefined symbol" in line]
    return [*named, *lines, "without a word"][0][:400]
