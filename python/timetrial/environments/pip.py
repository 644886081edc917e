"""Runs pip in another interpreter and reads what it says: what it is at, and why it failed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from timetrial.core.supervised import Supervised
from timetrial.environments.interpreters import without_callers_python
from timetrial.errors import Unavailable

Say = Callable[[str], None]

# Where these of the caller's would send the packages elsewhere, or nowhere.
_NOT_FOR_PIP = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_REQUIREMENT",
)
_NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|Name or service not known|Temporary failure in name resolution"
    r"|Network is unreachable|ProxyError|ConnectTimeoutError|ReadTimeoutError|SSLError"
)
_NO_VERSION = re.compile(r"satisfies the requirement (\S+?)(?: \(from .*?\))? \(from versions: (.*)\)")
_STEPS = re.compile(r"^\s*(Collecting|Downloading|Using cached|Processing|Building wheel for)\s+(\S+)")


def run_logged(
    command: Sequence[str | Path], log: Path, scratch: Path, say: Say, keep_open: Sequence[int] = ()
) -> bool:
    """Whether the command succeeded. Its output is appended to `log`; `say` hears what it is at.

    It ends with this call, and with this process, however that ends. `keep_open`: descriptors that live as
    long as the command.
    """
    environment = {
        name: value for name, value in without_callers_python().items() if name not in _NOT_FOR_PIP
    }
    environment.update(
        TMPDIR=str(scratch), PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONUNBUFFERED="1", LANG="C.UTF-8"
    )
    with log.open("a", encoding="utf-8") as written:
        written.write(f"$ {' '.join(map(str, command))}\n")
        written.flush()
        with Supervised(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=environment, pass_fds=tuple(keep_open),
        ) as process:  # fmt: skip
            for line in process.stdout:
                written.write(line)
                step = describe(line)
                if step:
                    say(step)
            return process.wait() == 0


def describe(line: str) -> str | None:
    """A line of pip's, for people: 'downloading numpy-1.16.6'; None where it tells them nothing."""
    if line.startswith("Installing collected packages:"):
        return f"unpacking {line.count(',') + 1} packages"
    match = _STEPS.match(line)
    if match is None:
        return None
    verb = {"Collecting": "looking for", "Using cached": "from the cache:"}.get(match[1], match[1].lower())
    return f"{verb} {match[2].rpartition('/')[2].removesuffix('.whl').removesuffix('.tar.gz')}"


def why_it_failed(log: Path, python: str, wheels: Path | None) -> Unavailable:
    """The reason in pip's output, with the cure."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    start = max((number for number, line in enumerate(lines) if line.startswith("$ ")), default=0)
    lines = lines[start + 1 :]
    text = "\n".join(lines)
    match = _NO_VERSION.search(text)
    if "No space left on device" in text:
        reason = "the disk is full"
    elif _NO_NETWORK.search(text) and (match is None or match[2] in ("", "none")):
        reason = (
            "the package index cannot be reached; when the network is back, try again, or give a folder that "
            "has the wheels: --wheels FOLDER"
        )
    elif match is not None:
        place = f"the folder {wheels}" if wheels else "the package index"
        offers = "nothing of that name" if match[2] in ("", "none") else f"only {_few(match[2])}"
        reason = f"the pin {match[1]} does not exist: {place} has {offers} for Python {python}"
    else:
        reason = f"pip failed: {_last_meaningful(lines)}"
    return Unavailable(f"{reason} (all that pip said: {log})")


def _few(versions: str) -> str:
    """The newest of a list, which grows."""
    words = versions.split(", ")
    return ", ".join(words) if len(words) <= 4 else f"{words[0]} ... {', '.join(words[-3:])}"


def _last_meaningful(lines: list[str]) -> str:
    """The last error; the last words where none is called so."""
    said = [line.strip() for line in lines if line.strip() and not line.startswith(("[notice]", "WARNING"))]
    errors = [line.removeprefix("ERROR: ") for line in said if "rror" in line]
    return [*errors[-1:], *said[-1:], "without a word"][0]
