"""TOML on every Python we support."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from timetrial.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """Raises InputError naming the file and the place."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from error
