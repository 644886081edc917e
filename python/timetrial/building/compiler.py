"""The C++ compiler of this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass

from timetrial.errors import Unavailable

_CURE = "sudo apt install g++ (or set CXX to a C++20 compiler)"


@dataclass(frozen=True)
class Compiler:
    """`command`: absolute path, and what CXX says behind it. `version`: the first line of its --version."""

    command: tuple[str, ...]
    version: str


def find_compiler() -> Compiler:
    """$CXX, otherwise g++. Unavailable, with the cure, where there is none or it does not work."""
    asked = os.environ.get("CXX", "").strip()
    words = shlex.split(asked) or ["g++"]
    path = shutil.which(words[0])
    if path is None:
        what = f"CXX={asked} is no program" if asked else "g++ is not on PATH"
        raise Unavailable(f"it is built on this machine, and there is no C++ compiler ({what}): {_CURE}")
    command = (path, *words[1:])
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(
            f"the C++ compiler {shlex.join(command)} does not work ({error}): {_CURE}"
        ) from error
    lines = done.stdout.strip().splitlines()
    return Compiler(command, lines[0] if lines else "unknown")
