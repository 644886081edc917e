"""What an environment needs and pip cannot bring: programs, shared libraries, room on the disk."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from timetrial.environments.catalog import Version
from timetrial.environments.marker import FOLDER_VARIABLE
from timetrial.errors import Unavailable
from timetrial.library_files.known import multiarch_folder

# Debian's packages of what frameworks commonly need.
PACKAGES = {
    "g++": "g++",
    "gcc": "gcc",
    "luajit": "luajit",
    "libgomp.so.1": "libgomp1",
    "libblas.so.3": "libopenblas0-pthread",
    "liblapack.so.3": "libopenblas0-pthread",
    "libgl.so.1": "libgl1",
}
# Wheels, what pip unpacks on the way, and the environment itself.
ROOM = 1.3
MARGIN_MB = 200


class Lacking(Unavailable):
    """What this machine lacks, and the command that cures it."""

    def __init__(self, reason: str, cure: str):
        super().__init__(f"{reason}: {cure}")
        self.reason = reason
        self.cure = cure


def check_system(version: Version) -> None:
    """Lacking: a program or a library that pip cannot bring."""
    missing = [word.partition(":") for word in version.system if not has(word.partition(":")[0])]
    if not missing:
        return
    names = ", ".join(name for name, _, _ in missing)
    packages = [package or PACKAGES.get(name.lower()) for name, _, package in missing]
    cure = f"sudo apt install {' '.join(dict.fromkeys(map(str, packages)))}"
    raise Lacking(
        f"it needs {names}, which this machine does not have",
        cure if all(packages) else f"install what brings {names}",
    )


def has(word: str) -> bool:
    """Whether a program, or a shared library by its soname or its path, is on this machine."""
    if "/" in word:
        return Path(word).exists()
    if ".so" in word:
        return word in _known_to_the_linker() or (multiarch_folder() / word).exists()
    return shutil.which(word) is not None


def check_room(folder: Path, size_mb: int) -> None:
    """Lacking: the disk has too little room for it."""
    place = folder
    while not place.exists():
        place = place.parent
    needed, free = size_mb * ROOM + MARGIN_MB, shutil.disk_usage(place).free / 1e6
    if free < needed:
        raise Lacking(
            f"it needs about {needed / 1000:.1f} GB in {place}, and {free / 1000:.1f} GB are free",
            f"make room, or set {FOLDER_VARIABLE} to a folder on another disk",
        )


@lru_cache(maxsize=1)
def _known_to_the_linker() -> frozenset[str]:
    """Every soname in the linker's cache."""
    program = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if program is None:
        return frozenset()
    done = subprocess.run([program, "-p"], capture_output=True, text=True, check=False)
    return frozenset(line.split()[0] for line in done.stdout.splitlines()[1:] if line.strip())
