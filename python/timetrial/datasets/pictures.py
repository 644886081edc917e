"""Files of pictures as bytes (C, H, W): decoded by Pillow, once, and the same for every contender."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from timetrial.dataset_files.dataset import ByteArray
from timetrial.dataset_files.memory import SHARE, is_too_much, memory_bytes
from timetrial.errors import InputError, Unavailable

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp")
# Pillow's modes, by the channels that they become. What has an alpha channel or more than 8 bits is refused:
# nobody has said what shall become of it.
GRAY, COLOR = ("L", "1"), ("RGB", "P", "CMYK", "YCbCr")
Channels = Literal[1, 3]
CURE = "pip install 'timetrial[images]'"


@dataclass(frozen=True)
class Form:
    """What a picture becomes. `size`: the shorter side becomes that, and the middle is cut out as a square;
    None: it stays as it is. `gray_as_color`: a gray picture gets three equal channels."""

    size: int | None
    gray_as_color: bool = False


def pillow(dataset: str) -> Any:
    """Pillow's module Image. Unavailable: it is not installed."""
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise Unavailable(f"the dataset '{dataset}' is decoded by Pillow: {CURE}") from None


def decoder() -> str:
    """Which Pillow it is: another one may decode JPEG otherwise in the last bit."""
    try:
        return f"Pillow {importlib.metadata.version('pillow')}"
    except importlib.metadata.PackageNotFoundError:
        return "Pillow"


def decode(image: Any, file: Path, form: Form) -> ByteArray:
    """The bytes of a picture. InputError: it is damaged, or its mode is none that can be read."""
    try:
        with image.open(file) as opened:
            picture = _in_mode(opened, file, form)
            picture.load()
    except InputError:
        raise
    except Exception as error:  # a damaged picture can fail in any way
        words = str(error).replace(str(file), "it") or type(error).__name__
        raise InputError(
            f"{file} cannot be decoded ({words}); expected a whole PNG or JPEG. Take it out, or download it "
            "again."
        ) from None
    array = np.asarray(squared(picture, form.size) if form.size else picture)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def squared(picture: Any, size: int) -> Any:
    """The middle of a picture of which the shorter side has become `size`, by Pillow's bilinear filter, which
    looks at every pixel and computes in whole numbers."""
    width, height = picture.size
    scale = size / min(width, height)
    wide, high = max(size, round(width * scale)), max(size, round(height * scale))
    if (wide, high) != (width, height):
        picture = picture.resize((wide, high), BILINEAR)
    left, top = (wide - size) // 2, (high - size) // 2
    return picture.crop((left, top, left + size, top + size))


BILINEAR = 2  # Pillow's number of the filter


def _in_mode(opened: Any, file: Path, form: Form) -> Any:
    if opened.mode in GRAY:
        return opened.convert("RGB" if form.gray_as_color else "L")
    if opened.mode in COLOR and "transparency" not in opened.info:
        return opened.convert("RGB")
    raise InputError(
        f"{file} is of the mode {opened.mode}{' with transparency' if opened.mode in COLOR else ''}; "
        "expected 8 bits in gray, or in red, green and blue, without alpha. Convert it, or take it out."
    )


def check_size(dataset: str, count: int, shape: Sequence[int]) -> None:
    """InputError: decoded as 32-bit numbers they would fill the machine's memory."""
    channels, height, width = shape
    needed = count * channels * height * width * 4
    if is_too_much(needed):
        memory = memory_bytes()
        fit = int(SHARE * memory * count / needed)
        raise InputError(
            f"'{dataset}' has {count:,} pictures of {channels}x{height}x{width}: decoded they take "
            f"{needed / 1e9:,.0f} GB, and this machine has {memory / 1e9:.0f} GB of memory; expected at most "
            f"{fit:,}. Take fewer of each class, or make them smaller: "
            f"dataset={dataset.partition('@')[0]}@64."
        )
