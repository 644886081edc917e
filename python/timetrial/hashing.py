"""What a file contains, as a hash."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path


def file_hash(path: Path) -> str:
    """sha256 of a file, computed once per path, size and time of change."""
    status = path.stat()
    return _hash(str(path), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _hash(path: str, size: int, mtime_ns: int) -> str:
    del size, mtime_ns
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
