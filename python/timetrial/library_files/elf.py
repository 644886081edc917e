"""Whether a file is a shared object that a process of this machine can load."""

from __future__ import annotations

import platform
from pathlib import Path

# Offsets and numbers of the ELF header: System V ABI, chapter 4.
_HEADER_BYTES = 20
_CLASS_64, _TYPE_SHARED = 2, 3
_MACHINES = {"x86_64": 62, "aarch64": 183}


def elf_problem(path: Path) -> str | None:
    """Why `path` is no shared object for this machine, in words; None: it is one."""
    if not path.exists():
        return "there is no such file"
    if not path.is_file():
        return "this is not a file"
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if len(header) < _HEADER_BYTES or header[:4] != b"\x7fELF":
        return "this is not a shared object (no ELF header)"
    kind, machine = (int.from_bytes(header[at : at + 2], "little") for at in (16, 18))
    if kind != _TYPE_SHARED:
        return "this is an ELF file, but not a shared object"
    expected = _MACHINES.get(platform.machine(), machine)
    if header[4] != _CLASS_64 or machine != expected:
        return f"this shared object was built for another machine, not for {platform.machine()}"
    return None
