"""Sizes of memory as people write them: 512MB, 2GB, 512MiB."""

from __future__ import annotations

import re

from timetrial.errors import InputError

# As in every table of timetrial, for control groups and for Docker: what is read can be asked for.
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
LARGEST = 2**62


def bytes_of(size: object, name: str = "memory") -> int:
    """'2GB', '512 MiB' (MB and MiB are 2^20 bytes); a number is bytes. InputError, with `name`, whose it is:
    no size."""
    match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,9})?) ?(?:([KMG])I?)?B?", str(size).strip().upper(), re.ASCII)
    found = int(float(match[1]) * _UNITS[match[2] or ""]) if match else 0
    if not 0 < found <= LARGEST:
        raise InputError(f"{name}={size!r}: expected a size such as 2GB, 512MB or 512MiB")
    return found
