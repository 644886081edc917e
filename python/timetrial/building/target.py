"""What a plug-in is built against: an installed library with its headers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """One library on this machine."""

    name: str  # with its version, for people: "torch 2.13.0+cpu"
    version: str
    library: Path  # the file that computes
    includes: tuple[Path, ...]
    link: tuple[str, ...]  # arguments of the linker

    def identity(self) -> dict[str, object]:
        """What must be equal for a plug-in to fit: the version, the place and the very file."""
        status = self.library.stat()
        return {
            "name": self.name,
            "library": str(self.library),
            "bytes": status.st_size,
            "mtime_ns": status.st_mtime_ns,
        }
