"""The libraries that have names: libraries.toml, read once."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from timetrial.toml import read_toml

Kind = Literal["blas", "onednn", "allocator"]

_FILE = Path(__file__).with_name("libraries.toml")


def multiarch_folder() -> Path:
    """Where Debian puts libraries."""
    return Path("/usr/lib") / f"{platform.machine()}-linux-gnu"


@dataclass(frozen=True)
class KnownLibrary:
    """One table of libraries.toml, which explains the fields."""

    name: str
    kind: Kind
    words: str
    files: tuple[str, ...]
    fortran: tuple[str, ...] = ()
    distribution: str | None = None
    pin: str | None = None
    package: str | None = None
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def path(self) -> Path | None:
        """The file on this machine; None if it is not installed. Imports and loads nothing."""
        return self._first(self.files)

    def fortran_path(self) -> Path | None:
        """The same, of the file that has the names of Fortran (sgemm_)."""
        return self._first(self.fortran or self.files)

    def _first(self, files: tuple[str, ...]) -> Path | None:
        if self.distribution is None:
            places = [multiarch_folder() / file for file in files]
        else:
            places = [place for file in files for place in _in_distribution(self.distribution, file)]
        return next((place for place in places if place.is_file()), None)

    @property
    def cure(self) -> str:
        """The one command that installs it."""
        if self.distribution is None:
            return f"sudo apt install {self.package}"
        pin = f"=={self.pin}" if self.pin else ""
        return f"{sys.executable} -m pip install {self.distribution}{pin}"

    def version(self) -> str | None:
        """Of the installed distribution; None where no distribution has it."""
        try:
            return importlib.metadata.version(self.distribution) if self.distribution else None
        except importlib.metadata.PackageNotFoundError:
            return None


@cache
def known_libraries() -> dict[str, KnownLibrary]:
    """Name -> library, in the order of the file."""
    tables = read_toml(_FILE)
    return {
        name: KnownLibrary(
            name, **{**table, "files": tuple(table["files"]), "fortran": tuple(table.get("fortran", ()))}
        )
        for name, table in tables.items()
    }


def _in_distribution(name: str, pattern: str) -> list[Path]:
    """Files that the distribution installed. Wheels put libraries beside site-packages as well, so the
    recorded paths have '..' in them."""
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    located = (Path(str(file.locate())) for file in sorted(files) if file.match(pattern))
    return [path.parent.resolve() / path.name for path in located]
