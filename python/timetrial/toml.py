"""TOML on every Python we support, with errors that name the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from timetrial.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The document in a text; `where` begins the error: "The value of 'threads'"."""
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        words = "its brackets are nested too deeply"
        raise InputError(f"{where} is not TOML: {words}.") from None
    except ValueError as error:  # TOMLDecodeError, or a number of more digits than Python reads
        raise InputError(f"{where} is not TOML: {error}.") from None
    return document


def read_toml(path: Path, what: str = "The file") -> dict[str, Any]:
    """The document in a file; `what` names its kind in errors: "The network file"."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{what} {path} does not exist (looked in {Path.cwd()}).") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{what} {path} cannot be read: {error}.") from None
    return parse_toml(text, f"{what} {path}")


def as_values(value: Any) -> list[Any]:
    """A list (or tuple, or range) spans; anything else is one value."""
    return list(value) if isinstance(value, list | tuple | range) else [value]
