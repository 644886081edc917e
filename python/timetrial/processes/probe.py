"""A program that answers one question and ends: what a plug-in says of itself, whether a library loads.

What it loads may be broken, or evil by accident. So it runs as a contender does: under the supervisor, with
time, memory and output limited, in a folder that goes, and nothing that it started outlives it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial.caps.caps import Caps
from timetrial.processes.contender_process import OUTPUT_FILES, Command, ContenderProcess
from timetrial.processes.events import Ready
from timetrial.processes.left import remove
from timetrial.processes.outcome import LaunchError
from timetrial.processes.output import head, tail

TIMEOUT_S = 30.0  # of running time
MEMORY_BYTES = 16 << 30  # of address space
MOST_WORDS_BYTES = 4096  # of standard error, its end: what is shown to people
OWN = ("home", "tmp")


@dataclass(frozen=True)
class Answer:
    """How it ended: the exit code, or None and in words how else; what it wrote."""

    code: int | None
    ended: str
    stdout: str
    stderr: str


def ask(program: Sequence[str], environment: Mapping[str, str]) -> Answer:
    """Starts the program and waits for its end. MeasurementError: it cannot be started here."""
    folder = Path(tempfile.mkdtemp(prefix="timetrial-probe-"))
    try:
        for name in OWN:
            (folder / name).mkdir()
        own = {"PATH": os.defpath, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
        command = Command(program, {**own, **environment}, caps=Caps(MEMORY_BYTES, "data"))
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            with ContenderProcess(command, nothing, folder) as process:
                ended = _ended(process)
        finally:
            os.close(nothing)
        stdout, stderr = (folder / name for name in OUTPUT_FILES)
        return Answer(process.exit_code, ended, head(stdout), tail(stderr, MOST_WORDS_BYTES))
    finally:
        remove(folder)


def _ended(process: ContenderProcess) -> str:
    try:
        process.wait(Ready, "loading", TIMEOUT_S)
    except LaunchError as error:
        return error.reason
    return "it spoke as a contender does"
