"""Real photographs that come with scikit-image, cropped and mirrored: which one is it?

A few pictures make a small data set for networks that take large images: there is structure at every scale,
as in what such networks are made for. Crops to test on are other crops of the same photographs.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.core import random
from timetrial.dataset_files.dataset import Dataset, image_dataset, pixels
from timetrial.dataset_files.files import file_hashes
from timetrial.datasets.pictures import BILINEAR, CURE, decoder, pillow
from timetrial.errors import InputError, Unavailable

PHOTOGRAPHS = (
    "astronaut.png",
    "chelsea.png",
    "coffee.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "motorcycle_left.png",
    "retina.jpg",
    "rocket.jpg",
)
TRAIN_CROPS, TEST_CROPS = 32, 8  # of each
SMALLEST_SHARE = 0.5  # of the shorter side of a photograph, that a crop has
LARGEST = 300  # pixels: the smallest photograph has no more


def photograph_files(folder: str | None) -> list[Path]:
    """Where scikit-image has them; nothing of it is imported. Unavailable: it is not installed."""
    found = importlib.util.find_spec("skimage")
    places = list(found.submodule_search_locations or []) if found else []
    if not places:
        raise Unavailable(f"the dataset 'photographs' comes with scikit-image: {CURE}")
    files = [Path(places[0]) / "data" / name for name in PHOTOGRAPHS]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise Unavailable(f"this scikit-image lacks {', '.join(missing)}: {CURE} --upgrade")
    return files


def photographs_key(folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    return {**file_hashes(photograph_files(folder)), "decoder": decoder()}


def load_photographs(name: str, size: int, folder: str | None, seed: int) -> Dataset:
    """Images (3, size, size), of which `seed` draws place, share and direction."""
    if size > LARGEST:
        raise InputError(
            f"'{name}': the size {size}; expected at most {LARGEST}, which every photograph has."
        )
    files = photograph_files(folder)
    image = pillow(name)
    parts: list[Any] = []
    for part, count in (("train", TRAIN_CROPS), ("test", TEST_CROPS)):
        crops = [_crops(image, file, size, f"photographs/{part}/{file.stem}", count, seed) for file in files]
        # One of each after the other, so that any batch has several.
        images = np.stack(crops, axis=1).reshape(-1, 3, size, size)
        labels = np.tile(np.arange(len(files), dtype=np.int64), count)
        parts.append((pixels(images), labels))
    return image_dataset(
        name,
        parts[0],
        parts[1],
        classes=len(files),
        description={
            "source": f"photographs of scikit-image, decoded by {decoder()}",
            "split": f"{TRAIN_CROPS} crops of each for training and {TEST_CROPS} others of the same for "
            "testing",
            "split_seed": seed,
            "class_names": ", ".join(file.stem for file in files),
            "files_sha256": file_hashes(files),
        },
    )


def _crops(image: Any, file: Path, size: int, stream: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    with image.open(file) as opened:
        picture = opened.convert("RGB")
    width, height = picture.size
    drawn = random.uniform(seed, stream, (count, 4), 0.0, 1.0).astype(np.float64)
    crops = np.empty((count, 3, size, size), np.uint8)
    for number, (share, across, down, mirrored) in enumerate(drawn):
        side = int(min(width, height) * (SMALLEST_SHARE + (1 - SMALLEST_SHARE) * share))
        left, top = int((width - side) * across), int((height - side) * down)
        box = (left, top, left + side, top + side)
        crop = np.asarray(picture.resize((size, size), BILINEAR, box=box)).transpose(2, 0, 1)
        crops[number] = crop[:, :, ::-1] if mirrored < 0.5 else crop
    return crops
