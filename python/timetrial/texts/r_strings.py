"""Texts of an R package's data: the file Rdata.rdb, in which each object is a length in four bytes and packed
by zlib. Read are objects that are lists of strings, in R's serialization (R Internals, 1.8), version 2 or 3.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from timetrial.dataset_files.files import read_file
from timetrial.errors import InputError

STRINGS, STRING = 16, 9  # kinds of objects
MISSING = -1  # the length of a string that is none


def read_string_lists(file: Path) -> list[list[str]]:
    """Each object of the file. InputError: it is damaged, or has other objects."""
    content = read_file(file)
    found, place = [], 0
    try:
        while place < len(content):
            unpacker = zlib.decompressobj()
            found.append(_strings(unpacker.decompress(content[place + 4 :])))
            place = len(content) - len(unpacker.unused_data)
    except (zlib.error, struct.error, UnicodeDecodeError, _OtherError) as error:
        raise InputError(f"{file} is no whole file of R's with texts (byte {place}: {error}).") from None
    return found


class _OtherError(Exception):
    """Something that is no list of strings."""


def _strings(content: bytes) -> list[str]:
    if content[:2] != b"X\n":
        raise _OtherError("it is not in R's binary form")
    (version,) = struct.unpack_from(">i", content, 2)
    place = 14
    if version >= 3:  # the character set of the session that wrote it
        (length,) = struct.unpack_from(">i", content, place)
        place += 4 + length
    kind, count = struct.unpack_from(">ii", content, place)
    place += 8
    if kind & 0xFF != STRINGS:
        raise _OtherError(f"an object of the kind {kind & 0xFF}; expected strings")
    strings = []
    for _ in range(count):
        kind, length = struct.unpack_from(">ii", content, place)
        place += 8
        if kind & 0xFF != STRING or length < MISSING or place + length > len(content):
            raise _OtherError("strings that break off")
        strings.append(content[place : place + max(0, length)].decode("utf-8"))
        place += max(0, length)
    return strings
