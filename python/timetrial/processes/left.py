"""What a contender leaves on the disk, looked at as by a stranger: any of it may be something else."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from timetrial.npy import HEADER_BYTES, read_header
from timetrial.processes.events import broken
from timetrial.records.files import open_regular

IN_MEMORY_BYTES = 1 << 20  # larger arrays are mapped from a copy
MOST_FILES = 100_000  # that are looked at in a folder


def read_array(path: Path, most_bytes: int) -> NDArray[Any]:
    """A .npy file of numbers, of at most so many bytes, as it is now: what happens to the file later changes
    nothing. Large ones are mapped from a copy without a name and take no memory until somebody looks.

    LaunchError: there is none, or it is something else (a FIFO, a device, text, Python objects, truncated, or
    larger than anything that was asked for).
    """
    try:
        with open_regular(path) as file:
            return _read(file, path.parent, most_bytes + HEADER_BYTES)
    except (OSError, ValueError, TypeError, MemoryError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise broken(f"it left no readable {path.name}: {words}") from None


def _read(file: IO[bytes], folder: Path, most_bytes: int) -> NDArray[Any]:
    length = os.fstat(file.fileno()).st_size
    if length > most_bytes:
        raise ValueError(f"it has {length} bytes, {most_bytes} at most have a use")
    header = read_header(file)
    size, place = header.size * header.dtype.itemsize, header.begins
    if length <= IN_MEMORY_BYTES:
        content: bytes | mmap.mmap = file.read(size)
        place = 0
    else:
        content = _copied(file, folder, length)
    if len(content) < place + size:
        raise ValueError("it became shorter while it was read")
    flat = np.frombuffer(content, header.dtype, header.size, place)
    return flat.reshape(header.shape, order=header.order)


def _copied(file: IO[bytes], folder: Path, size: int) -> mmap.mmap:
    with tempfile.TemporaryFile(dir=folder) as copy:
        file.seek(0)
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        if copy.tell() != size:
            raise ValueError("its length changed while it was read")
        return mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)


def files_below(folder: Path) -> Iterator[tuple[Path, int]]:
    """The regular files below a folder with their sizes, as far as its folders can be read; of no more than
    MOST_FILES entries."""
    left, seen = [folder] if not folder.is_symlink() else [], 0
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_FILES:
                        return
                    if entry.is_dir(follow_symlinks=False):
                        left.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        with contextlib.suppress(OSError):  # gone meanwhile
                            yield Path(entry.path), entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue


def empty(folder: int) -> None:
    """Takes away the files of a folder that is open as this descriptor, wherever its path leads by now. What
    cannot go, as folders, stays."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


def remove(folder: Path) -> None:
    """A folder with all below it, however deep, and whatever its permissions; or what stands in its place.
    What cannot go stays."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
        else:
            shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        # These follow no path that is longer than the system allows.
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


def printable(path: Path | str) -> str:
    """A name as text: bytes that are no UTF-8 and control characters are escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def largest_array_bytes(job: Mapping[str, Any]) -> int:
    """More than any tensor of a job's network takes, in double precision."""
    nodes = job["network"]["nodes"]
    shapes = [one["shape"] for node in nodes for one in (node, *node["parameters"])]
    return 16 * max((math.prod(shape) for shape in shapes), default=0)
