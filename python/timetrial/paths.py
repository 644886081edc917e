"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path

from timetrial.errors import InputError

_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes, of Linux's file systems


def user_path(word: str | Path) -> Path:
    """With `~` and `~user` filled in. InputError: no file can have this name, or there is no such user."""
    try:
        path = Path(word).expanduser()
        encoded = os.fsencode(path)
    except RuntimeError:
        user = Path(word).parts[0]
        raise InputError(f"'{word}': there is no user '{user[1:]}' here, so '{user}' is no folder.") from None
    except UnicodeEncodeError:
        raise InputError(f"{str(word)!r}: no file can have this name.") from None
    if b"\0" in encoded:
        raise InputError(f"{str(word)!r}: no file can have a NUL in its name.")
    if len(encoded) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in encoded.split(b"/")):
        most = f"a file's name has {_LONGEST_NAME} at most, its path {_LONGEST_PATH}"
        raise InputError(f"'{str(word)[:60]}...' has {len(encoded)} bytes: {most}.")
    return path
