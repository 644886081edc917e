"""environment.toml, read: the versions of a framework and what each needs (see frameworks/README.md)."""

from __future__ import annotations

import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion
from packaging.version import Version as Pep440
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from timetrial.errors import InputError, nearest
from timetrial.toml import read_toml

FRAMEWORKS_FOLDER = Path(__file__).resolve().parent.parent / "frameworks"
FILE = "environment.toml"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SettingTable(_Table):
    """How a setting reaches the process before the adapter runs."""

    environment: tuple[str, ...] = ()  # variables that get the value, only if it is asked
    affinity: bool = False  # `threads = n` binds the contender to the first n processors it may use


class Version(_Table):
    """One version of a framework: an interpreter, packages, an adapter."""

    version: str  # the word after the @: "1.15.5", "1.15.2-intel"
    adapter: str = "adapter.py"  # in the framework's folder
    program: str = ""  # of a contender that is no Python: its main file in the framework's folder
    python: str = ""  # interpreters its packages exist for: ">=3.6,<3.8"
    pins: tuple[str, ...] = ()  # what was seen to work, for pip
    pip: str = ""  # the pip to bring first, where the interpreter's own is too old for the wheels
    modules: dict[str, str] = Field(default_factory=dict)  # module that must be found -> its distribution
    serves: str = ""  # versions of the first module that this adapter drives too: ">=2.16"; "": none but this
    modes: tuple[str, ...] = ()  # values of the setting `mode`, the default first
    system: tuple[str, ...] = ()  # what pip cannot bring: programs ("g++"), shared libraries ("libgomp.so.1")
    user_path: str = ""  # what the user must name, in words: "a Neon checkout"; "": nothing
    size_mb: int = 0
    verified: datetime.date | None = None
    cheap: bool = False  # one of those that `make test` installs
    helper_threads: tuple[str, ...] = ()  # names (a * ends a prefix) of threads that never compute
    dispatches: bool = False  # the main thread hands the work to a pool and waits: it is no pool thread
    settings: dict[str, SettingTable] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)  # always set; "{cache}", "{path}" are filled in

    @field_validator("python", "serves")
    @classmethod
    def _is_a_range(cls, text: str) -> str:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            raise ValueError(f"{text!r} is no range of versions, such as '>=3.8,<3.9'") from None
        return text

    def is_exactly(self, found: str) -> bool:
        """Whether `found` is this version, of whichever build ("2.13.0+cpu" is 2.13.0)."""
        return found.partition("+")[0] == self.version

    def fits(self, found: str) -> bool:
        """Whether this adapter drives the version that an interpreter has."""
        try:
            version = Pep440(found)
        except InvalidVersion:
            return False
        return self.is_exactly(found) or bool(
            self.serves and SpecifierSet(self.serves).contains(version, prereleases=True)
        )


class Framework(_Table):
    """A framework: its folder and its versions, the default first."""

    name: str
    folder: Path
    title: str
    versions: tuple[Version, ...]

    def version(self, word: str) -> Version:
        """The version called so. InputError: there is none."""
        for one in self.versions:
            if one.version == word:
                return one
        known = [one.version for one in self.versions]
        raise InputError(f"{self.name} has no version {word!r}.{nearest(word, known)}")


def shipped_frameworks() -> dict[str, Framework]:
    """Name -> framework, of every folder that has an environment.toml."""
    return {
        path.parent.name: framework_in(path.parent) for path in sorted(FRAMEWORKS_FOLDER.glob(f"*/{FILE}"))
    }


@lru_cache(maxsize=128)
def framework_in(folder: Path) -> Framework:
    """The framework of a folder. Without environment.toml: one version that needs nothing."""
    file = folder / FILE
    if not file.is_file():
        return Framework(
            name=folder.name, folder=folder, title=folder.name, versions=(Version(version="current"),)
        )
    document: dict[str, Any] = read_toml(file)
    title = document.pop("title", folder.name)
    shared = document.pop("shared", {})
    tables = document.pop("versions", [])
    if document or not isinstance(tables, list) or not tables:
        raise InputError(
            f"{file}: expected title, [shared] and at least one [[versions]], found {[*document]}"
        )
    try:
        versions = tuple(Version(**{**shared, **table}) for table in tables)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InputError(f"{file}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
    return Framework(name=folder.name, folder=folder, title=title, versions=versions)
