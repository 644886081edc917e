"""IDX files, the form in which MNIST is published.

Big-endian: a magic number (0x0000, type 0x08 for bytes, number of dimensions), one 32-bit extent per
dimension, then the bytes. Images are 2051 (count, rows, columns), labels 2049 (count).
Source: the format description on the MNIST page of Y. LeCun, C. Cortes and C. Burges.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from timetrial.dataset_files.dataset import ByteArray
from timetrial.dataset_files.files import read_file
from timetrial.errors import InputError

IMAGES, LABELS = 2051, 2049
KINDS = {IMAGES: "images", LABELS: "labels"}


def read_idx(file: Path, magic: int) -> ByteArray:
    """The array of a file: (count, rows, columns) for IMAGES, (count) for LABELS."""
    content = read_file(file)
    expected = f"{magic} ({KINDS[magic]})"
    if len(content) < 4:
        raise InputError(
            f"{file} has {len(content)} bytes; expected an IDX file with magic number {expected}."
        )
    (found,) = struct.unpack(">I", content[:4])
    if found != magic:
        hint = (
            f" It holds {KINDS[found]}: were the files swapped?"
            if found in KINDS
            else " It is no such IDX file."
        )
        raise InputError(f"{file} begins with {found}; expected the magic number {expected}.{hint}")
    dimensions = magic & 0xFF
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise InputError(f"{file} is truncated: {len(content)} bytes, its header alone has {header}.")
    extents = struct.unpack(f">{dimensions}I", content[4:header])
    size = int(np.prod(extents, dtype=object))
    if len(content) - header != size:
        form = " x ".join(str(extent) for extent in extents)
        state = "truncated" if len(content) - header < size else "too long"
        raise InputError(
            f"{file} is {state}: its header announces {form} = {size} bytes, {len(content) - header} follow. "
            "Download it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(extents)
