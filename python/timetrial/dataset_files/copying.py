"""Copies of files that must be what they are said to be: unpacked, counted, hashed, and whole or not kept."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from timetrial.dataset_files.known import FileFacts
from timetrial.errors import Unavailable

BLOCK = 1 << 20
MARGIN_BYTES = 20_000_000
# A bit that fell over makes a zip ask for a version, a compression (NotImplementedError) or a password
# (RuntimeError) that nobody has.
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_DAMAGED = (*DAMAGED_ZIP, gzip.BadGzipFile, tarfile.TarError)


class Readable(Protocol):
    """An open file, packed or not."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class Damaged(Unavailable):
    """What was brought is not what was expected; another source may have it."""


@contextlib.contextmanager
def whole(what: str) -> Iterator[None]:
    """Whatever an archive can be damaged by, in words."""
    try:
        yield
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise Damaged(f"{what} is damaged, or was not downloaded to its end ({reason})") from None


def copy(stream: Readable, target: Path, facts: FileFacts | None, where: str) -> str:
    """The sha256 of what was copied. Damaged: it is not what `facts` say; OSError: it cannot be written."""
    digest, size = hashlib.sha256(), 0
    most = facts.bytes if facts else None
    with target.open("wb") as written:
        while block := stream.read(BLOCK):
            size += len(block)
            if most is not None and size > most:
                raise Damaged(
                    f"{target.name} from {where} has more than the {most:,} bytes that it must have"
                )
            digest.update(block)
            written.write(block)
    found = digest.hexdigest()
    if facts and size < facts.bytes:
        raise Damaged(f"{target.name} from {where} is truncated: {size:,} bytes of {facts.bytes:,}")
    if facts and found != facts.sha256:
        raise Damaged(
            f"{target.name} from {where} has the sha256 {found}, expected {facts.sha256}: it is damaged, or "
            "it is something else"
        )
    return found


def copy_file(file: Path, target: Path, facts: FileFacts | None, where: str) -> str:
    """The same of a file on disk, unpacked if its name ends with .gz."""
    with whole(str(file)), gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        return copy(stream, target, facts, where)


def room_problem(folder: Path, needed: int) -> str | None:
    """What is wrong with the disk of a folder that `needed` bytes shall go to; None: nothing."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free >= needed + MARGIN_BYTES:
        return None
    return f"it needs {needed / 1e6:.0f} MB in {place}, and {free / 1e6:.0f} MB are free"
