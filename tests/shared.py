"""What all workers of pytest-xdist share. (Its groups cannot help: since pytest 9 they are not seen.)"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

MADE = ".made"


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """The folder; whoever is first makes it, the others wait. One that was left half made is made anew."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / MADE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            (folder / MADE).touch()
    return folder
