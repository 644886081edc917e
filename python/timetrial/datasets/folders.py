"""Pictures of the user's: a folder with a sub-folder for each class, or ImageNet's folders.

`images`: train/CLASS/*.png and test/CLASS/*.png (or val/), or CLASS/*.png alone, of which a fifth of each
class is kept for testing. `imagenet`: train/nXXXXXXXX/*.JPEG and val/, with sub-folders or with a file of
labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from timetrial.dataset_files.dataset import ByteArray, Dataset, IntArray, image_dataset, pixels
from timetrial.dataset_files.trees import (
    HELD_OUT,
    Split,
    Tree,
    Wanted,
    files_in,
    hold_out,
    root_of,
    split_of,
    tree_of,
    tree_sum,
)
from timetrial.datasets.imagenet_labels import validation_labels
from timetrial.datasets.pictures import ENDINGS, Form, check_size, decode, decoder, pillow
from timetrial.errors import InputError

PICTURES = Wanted("picture", ENDINGS, "train/CLASS/*.png and test/CLASS/*.png, or CLASS/*.png (JPEG too)")
IMAGENET_LAYOUT = "train/nXXXXXXXX/*.JPEG and val/"


def images_key(name: str, folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    return _key(name, folder, split_of(name, folder, PICTURES))


def load_images(name: str, size: int | None, folder: str | None, seed: int) -> Dataset:
    """All pictures are gray or all are colored; without `size`, all are of one size."""
    return _load(name, folder, split_of(name, folder, PICTURES), Form(size), seed)


def imagenet_key(name: str, folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    return _key(name, folder, _imagenet(name, folder))


def load_imagenet(name: str, size: int, folder: str | None, seed: int) -> Dataset:
    """The split is the published one. Some of its pictures are gray: they get three equal channels."""
    return _load(name, folder, _imagenet(name, folder), Form(size, gray_as_color=True), seed)


def _imagenet(name: str, folder: str | None) -> Split:
    root = root_of(name, folder, IMAGENET_LAYOUT)
    for part in ("train", "val"):
        if not (root / part).is_dir():
            raise InputError(f"'{root}' has no folder {part}. Expected {IMAGENET_LAYOUT}.")
    train = tree_of(root / "train", PICTURES)
    flat = files_in(root / "val", PICTURES)
    if not flat:
        return train, tree_of(root / "val", PICTURES, train.classes)
    labels = validation_labels(root, [file.name for file in flat], train.classes)
    return train, Tree(train.classes, tuple(flat), tuple(labels))


def _key(name: str, folder: str | None, split: Split) -> dict[str, str]:
    train, test = split
    labels = repr((train.labels, test.labels if test else ()))
    files = [*train.files, *(test.files if test else ())]
    return {"pictures": tree_sum(Path(folder or ""), files), "labels": labels, "decoder": decoder()}


def _load(name: str, folder: str | None, split: Split, form: Form, seed: int) -> Dataset:
    image = pillow(name)
    train, test = split
    count = len(train.files) + (len(test.files) if test else 0)
    first = decode(image, train.files[0], form)
    check_size(name, count, first.shape)
    held_out = "as the folders say"
    if test is None:
        train, test = hold_out(train, PICTURES, "images", seed)
        held_out = f"random, one of {HELD_OUT} of each class for testing"
    parts = [_decoded(image, tree, form, train.files[0], first.shape) for tree in (train, test)]
    description: dict[str, Any] = {
        "source": f"pictures of the user's, decoded by {decoder()}",
        "split": held_out,
        "size": "as they are"
        if form.size is None
        else f"the shorter side as {form.size}, the middle cut out",
        "class_names": ", ".join(train.classes)
        if len(train.classes) <= 20
        else f"{len(train.classes)} folders",
        "files_sha256": {"all pictures": images_sum(folder, split)},
    }
    if split[1] is None:
        description["split_seed"] = seed
    (train_images, train_labels), (test_images, test_labels) = parts
    return image_dataset(
        name,
        (pixels(train_images), train_labels),
        (pixels(test_images), test_labels),
        len(train.classes),
        description,
    )


def images_sum(folder: str | None, split: Split) -> str:
    """One sha256 of all pictures."""
    return _key("", folder, split)["pictures"]


def _decoded(
    image: Any, tree: Tree, form: Form, first: Path, shape: tuple[int, ...]
) -> tuple[ByteArray, IntArray]:
    images = np.empty((len(tree.files), *shape), np.uint8)
    for number, file in enumerate(tree.files):
        picture = decode(image, file, form)
        if picture.shape != shape:
            raise InputError(_differing(file, picture.shape, first, shape))
        images[number] = picture
    return images, np.array(tree.labels, np.int64)


def _differing(file: Path, found: tuple[int, ...], first: Path, expected: tuple[int, ...]) -> str:
    """Two pictures that do not fit into one data set."""
    if found[0] != expected[0]:
        words = {1: "gray", 3: "colored"}
        return (
            f"{file} is {words[found[0]]}; expected {words[expected[0]]}, as {first} is. All pictures must "
            "be one or the other: convert it, or take it out."
        )
    return (
        f"{file} has {found[2]}x{found[1]} pixels; expected {expected[2]}x{expected[1]}, as {first} has. "
        "With dataset=images@64 (any size) all are made one: the shorter side, and the middle cut out."
    )
