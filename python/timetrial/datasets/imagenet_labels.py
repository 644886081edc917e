"""Labels of ImageNet's validation pictures, where these lie in one folder: from a list, or from the devkit.

A list, `val.txt`: a file's name and the number of its class (0 is the first folder of train), or the folder
itself, in each line. The devkit: `ILSVRC2012_validation_ground_truth.txt`, in the order of the file names one
ILSVRC2012_ID in each line, and `meta.mat`, which says whose folder each of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import scipy.io

from timetrial.errors import InputError

LISTS = ("val.txt", "val/val.txt", "val_labels.txt")
TRUTH, META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
DEVKITS = (".", "val", "data", "devkit/data", "ILSVRC2012_devkit_t12/data")


def validation_labels(root: Path, names: Sequence[str], classes: Sequence[str]) -> list[int]:
    """Of each name. InputError: there is neither, or it says something that cannot be."""
    for listed in LISTS:
        if (root / listed).is_file():
            return _by_list(root / listed, names, classes)
    for place in DEVKITS:
        truth, meta = root / place / TRUTH, root / place / META
        if truth.is_file() and meta.is_file():
            return _by_devkit(truth, meta, names, classes)
    raise InputError(
        f"{root / 'val'} has pictures and no sub-folders, and nothing says their classes; expected "
        f"{LISTS[0]} in {root} (a file's name and its class in each line), or {TRUTH} with {META}."
    )


def _lines(file: Path) -> list[list[str]]:
    try:
        return [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from None


def _by_list(file: Path, names: Sequence[str], classes: Sequence[str]) -> list[int]:
    numbers = {name: number for number, name in enumerate(classes)}
    found: dict[str, int] = {}
    for place, words in enumerate(_lines(file), 1):
        if len(words) != 2:
            raise InputError(f"{file}, line {place}: expected a file's name and its class.")
        name, label = words
        number = numbers.get(label, int(label) if label.isdecimal() else -1)
        if not 0 <= number < len(classes):
            raise InputError(
                f"{file}, line {place}: the class {label}; expected 0 to {len(classes) - 1}, or a folder of "
                "train."
            )
        found[Path(name).name] = number
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{file} says nothing of {missing[0]} ({len(missing)} of {len(names)} are missing).")
    return [found[name] for name in names]


def _by_devkit(truth: Path, meta: Path, names: Sequence[str], classes: Sequence[str]) -> list[int]:
    numbers = {name: number for number, name in enumerate(classes)}
    folders = _synsets(meta)
    ids = [words[0] for words in _lines(truth)]
    if len(ids) != len(names):
        raise InputError(
            f"{truth} has {len(ids)} lines, and there are {len(names)} pictures; expected as many."
        )
    labels = []
    for place, word in enumerate(ids, 1):
        folder = folders.get(int(word)) if word.isdecimal() else None
        if folder not in numbers:
            raise InputError(
                f"{truth}, line {place}: {word} is {folder or f'no ILSVRC2012_ID of {meta.name}'}, which no "
                "folder of train is."
            )
        labels.append(numbers[str(folder)])
    return labels


def _synsets(meta: Path) -> dict[int, str]:
    """ILSVRC2012_ID -> WNID."""
    try:
        synsets = scipy.io.loadmat(str(meta), squeeze_me=True)["synsets"]
        return {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets.reshape(-1)}
    except Exception as error:  # a damaged file can fail in any way
        raise InputError(f"{meta} is no meta.mat of the devkit ({type(error).__name__}: {error}).") from None
