"""Sizes as people write them: 512MB, 2GB, 512MiB."""

from __future__ import annotations

import re

from timetrial.errors import InputError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
LARGEST = 2**62


def bytes_of(size: str | int, name: str = "memory") -> int:
    """'2GB' -> 2,000,000,000; '512MiB'; a number is bytes. InputError, with `name`, whose it is: no size."""
    match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,9})?) ?([KMG]?I?)B?", str(size).strip().upper(), re.ASCII)
    found = int(float(match[1]) * _UNITS[match[2]]) if match and match[2] in _UNITS else 0
    if not 0 < found <= LARGEST:
        raise InputError(f"{name}={size!r}: expected a size such as 2GB, 512MB or 512MiB")
    return found
