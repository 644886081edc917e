"""What a contender wrote on its standard output and error."""

from __future__ import annotations

import os
from pathlib import Path

TAIL_BYTES = 16 * 1024


def head(path: Path, limit: int = 1024 * 1024) -> str:
    """The beginning of such a file; '' if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The end of a text file that a contender wrote; '' if there is none."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            text = file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
    return f"[{size - limit} bytes left out] {text}" if size > limit else text
