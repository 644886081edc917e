"""Folders of files of the user's, one sub-folder for each class."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.core import random
from timetrial.errors import InputError
from timetrial.paths import user_path

FEWEST_CLASSES = 2
FEWEST_SAMPLES = 2  # of a class, where some are held out
HELD_OUT = 5  # one sample of so many is tested on, where the user's folder says nothing
_sums: dict[tuple[str, int, int], str] = {}  # (path, size, time of change) -> sha256: every launch asks again


@dataclass(frozen=True)
class Wanted:
    """Which files of a folder are samples."""

    one: str  # "picture"
    endings: tuple[str, ...]  # of their names, in lower case: (".png", ".jpg")
    layout: str  # of a whole folder, in words
    ignored: tuple[str, ...] = ()  # names of sub-folders that are no class

    @property
    def words(self) -> str:
        """Of several."""
        return f"{self.one}s"


@dataclass(frozen=True)
class Tree:
    """Files with the number of their class, in the order of their names."""

    classes: tuple[str, ...]
    files: tuple[Path, ...]
    labels: tuple[int, ...]


Split = tuple[Tree, Tree | None]  # to train on, to test on; None: it is held out


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


def split_of(dataset: str, folder: str | None, wanted: Wanted) -> Split:
    """train/CLASS/* and test/CLASS/* (or val/), or CLASS/* alone."""
    root = root_of(dataset, folder, wanted.layout)
    tested = next((root / part for part in ("test", "val") if (root / part).is_dir()), None)
    if not (root / "train").is_dir():
        return tree_of(root, wanted), None
    if tested is None:
        raise InputError(
            f"'{root}' has a folder train and none of the names test and val. Expected {wanted.layout}."
        )
    train = tree_of(root / "train", wanted)
    return train, tree_of(tested, wanted, train.classes)


def hold_out(tree: Tree, wanted: Wanted, stream: str, seed: int) -> tuple[Tree, Tree]:
    """Of each class one sample of HELD_OUT, at least one, to test on."""
    labels = np.array(tree.labels)
    tested = np.zeros(len(labels), np.bool_)
    for number, name in enumerate(tree.classes):
        places = np.flatnonzero(labels == number)
        if len(places) < FEWEST_SAMPLES:
            raise InputError(
                f"The class '{name}' has {len(places)} {wanted.one}; expected at least {FEWEST_SAMPLES}, one "
                "to train on and one to test on."
            )
        order = random.permutation(seed, f"{stream}/{name}", len(places))
        tested[places[order[: max(1, len(places) // HELD_OUT)]]] = True

    def part(chosen: np.ndarray[Any, Any]) -> Tree:
        places = np.flatnonzero(chosen)
        return replace(
            tree,
            files=tuple(tree.files[place] for place in places),
            labels=tuple(tree.labels[place] for place in places),
        )

    return part(~tested), part(tested)


def tree_of(root: Path, wanted: Wanted, classes: Sequence[str] | None = None) -> Tree:
    """`classes`: those of the training samples, which others must be among."""
    names = sorted(one.name for one in _listed(root) if one.is_dir() and one.name not in wanted.ignored)
    known = tuple(classes if classes is not None else names)
    if len(known) < FEWEST_CLASSES:
        raise InputError(
            f"{root} has {len(names)} sub-folders with {wanted.words}; expected one for each class, at least "
            f"{FEWEST_CLASSES}."
        )
    numbers = {name: number for number, name in enumerate(known)}
    other = [name for name in names if name not in numbers]
    if other:
        raise InputError(
            f"{root / other[0]} is a class that none of the {wanted.words} to train on has; expected one of "
            f"{len(known)}: {known[0]} to {known[-1]}."
        )
    found = [(file, numbers[name]) for name in names for file in files_in(root / name, wanted)]
    for name in names:
        if not any(label == numbers[name] for _, label in found):
            raise InputError(f"{root / name} has no {wanted.words} ({', '.join(wanted.endings)}).")
    return Tree(known, tuple(file for file, _ in found), tuple(label for _, label in found))


def files_in(folder: Path, wanted: Wanted) -> list[Path]:
    """By name."""
    return [one for one in _listed(folder) if one.suffix.lower() in wanted.endings and one.is_file()]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}.") from None


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
