"""Folders of files, one sub-folder for each class."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from timetrial.datasets.pictures import ENDINGS
from timetrial.errors import InputError
from timetrial.paths import user_path

FEWEST_CLASSES = 2
_sums: dict[tuple[str, int, int], str] = {}  # (path, size, time of change) -> sha256: every launch asks again


@dataclass(frozen=True)
class Tree:
    """Pictures with the number of their class, in the order of their names."""

    classes: tuple[str, ...]
    files: tuple[Path, ...]
    labels: tuple[int, ...]


def root_of(dataset: str, folder: str | None, wanted: str) -> Path:
    """The user's folder. InputError: there is none."""
    if folder is None:
        raise InputError(
            f"The dataset '{dataset}' is read from a folder: set dataset_folder to one with {wanted}."
        )
    root = user_path(folder)
    if not root.is_dir():
        state = "is not a folder" if root.exists() else "does not exist"
        raise InputError(f"The dataset_folder '{folder}' {state}. Expected one with {wanted}.")
    return root


def tree_of(root: Path, classes: Sequence[str] | None = None) -> Tree:
    """`classes`: those of the training pictures, which others must be among."""
    names = sorted(one.name for one in _listed(root) if one.is_dir())
    known = tuple(classes if classes is not None else names)
    if len(known) < FEWEST_CLASSES:
        raise InputError(
            f"{root} has {len(names)} sub-folders with pictures; expected one for each class, at least "
            f"{FEWEST_CLASSES}."
        )
    numbers = {name: number for number, name in enumerate(known)}
    other = [name for name in names if name not in numbers]
    if other:
        raise InputError(
            f"{root / other[0]} is a class that none of the pictures to train on has; expected one of "
            f"{len(known)}: {known[0]} to {known[-1]}."
        )
    found = [(file, numbers[name]) for name in names for file in pictures_in(root / name)]
    for name in names:
        if not any(label == numbers[name] for _, label in found):
            raise InputError(f"{root / name} has no pictures ({', '.join(ENDINGS)}).")
    return Tree(known, tuple(file for file, _ in found), tuple(label for _, label in found))


def pictures_in(folder: Path) -> list[Path]:
    """By name."""
    return [one for one in _listed(folder) if one.suffix.lower() in ENDINGS and one.is_file()]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}.") from None


def check_size(dataset: str, count: int, shape: Sequence[int]) -> None:
    """InputError: decoded as 32-bit numbers they would fill the machine's memory."""
    channels, height, width = shape
    needed = count * channels * height * width * 4
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory / 2:
        fit = int(memory / 2 * count / needed)
        raise InputError(
            f"'{dataset}' has {count:,} pictures of {channels}x{height}x{width}: decoded they take "
            f"{needed / 1e9:,.0f} GB, and this machine has {memory / 1e9:.0f} GB of memory; expected at most "
            f"{fit:,}. Take fewer of each class, or make them smaller: "
            f"dataset={dataset.partition('@')[0]}@64."
        )


def tree_sum(root: Path, files: Iterable[Path]) -> str:
    """One sha256 of all names and contents."""
    digest = hashlib.sha256()
    for file in files:
        try:
            facts = file.stat()
            key = (str(file), facts.st_size, facts.st_mtime_ns)
            if key not in _sums:
                _sums[key] = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.") from None
        digest.update(f"{os.path.relpath(file, root)}\0{_sums[key]}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()
