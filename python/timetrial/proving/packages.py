"""The packages that a framework's contender imports, as their files are now: versions do not tell who edits a
package in place, or has another checkout of it in front."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from timetrial.contenders.registry import Contender


def digest_of_packages(contender: Contender) -> str | None:
    """Of paths, sizes and times of change of the files of all declared packages; "" where there are none.

    None: a package does not lie among those that are installed with the interpreter, or something in front of
    them has its name (a folder of PYTHONPATH, an editable install).
    """
    interpreter, version = contender.interpreter, contender.version
    if interpreter is None or version is None or version.program:
        return ""
    installed = _site_packages(interpreter.executable)
    digest = hashlib.sha256()
    for module in sorted(version.modules):
        root = module.partition(".")[0]
        places = [
            one for folder in installed for one in (folder / root, folder / f"{root}.py") if one.exists()
        ]
        in_front = [folder for folder in _in_front(interpreter.running, installed) if _has(folder, root)]
        if not places or in_front or interpreter.python_path:
            return None
        for file in sorted(_files(places[0])):
            facts = file.stat()
            digest.update(f"{file} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _site_packages(executable: Path) -> list[Path]:
    return [one.resolve() for one in sorted(executable.parent.parent.glob("lib/python*/site-packages"))]


def _in_front(running: bool, installed: list[Path]) -> Iterator[Path]:
    """Folders that are imported from and are none of the interpreter's own."""
    own = {*installed, *(Path(os.__file__).resolve().parent,)}
    for entry in sys.path if running else ():
        folder = Path(entry or ".").resolve()
        if folder.is_dir() and folder not in own:
            yield folder


def _has(folder: Path, module: str) -> bool:
    return (folder / module).is_dir() or (folder / f"{module}.py").is_file()


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = [one for one in folders if one != "__pycache__"]
        yield from (Path(folder) / name for name in names if name.endswith((".py", ".so")))
