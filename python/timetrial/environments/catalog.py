"""environment.toml, read: the versions of a framework and what each needs (see frameworks/README.md)."""

from __future__ import annotations

import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as Pep440
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from timetrial.errors import InputError, nearest
from timetrial.paths import user_path
from timetrial.toml import read_toml

FRAMEWORKS_FOLDER = Path(__file__).resolve().parent.parent / "frameworks"
FILE = "environment.toml"
CURRENT = "current"  # the word for the running interpreter as an environment


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SettingTable(_Table):
    """How a setting reaches the process before the adapter runs."""

    environment: tuple[str, ...] = ()  # variables that get the value, only if it is asked
    # The value is a library (`timetrial list libraries`, or a path), found by this name by whatever needs it.
    soname: str = ""
    # The value is a CBLAS that stands in for the one that the framework has inside, loaded first of all.
    stands_in: bool = False
    values: tuple[str, ...] = ()  # those of the setting's values that the adapter has; empty: all
    affinity: bool = False  # `threads = n` binds the contender to the first n processors it may use


class Version(_Table):
    """One version of a framework: an interpreter, packages, an adapter."""

    version: str  # the word after the @: "1.15.5", "1.15.2-intel"
    adapter: str = "adapter.py"  # in the framework's folder
    program: str = ""  # of a contender that is no Python: its main file in the framework's folder
    executable: str = ""  # what starts `program`: a file in the folder that the user names ("bin/luajit")
    python: str = ""  # interpreters its packages exist for: ">=3.6,<3.8"
    pins: tuple[str, ...] = ()  # what was seen to work, for pip
    pip: str = ""  # the pip to bring first, where the interpreter's own is too old for the wheels
    modules: dict[str, str] = Field(default_factory=dict)  # module that must be found -> its distribution
    serves: str = ""  # versions of the first module that this adapter drives too: ">=2.16"; "": none but this
    modes: tuple[str, ...] = ()  # values of the setting `mode`, the default first
    # What pip cannot bring: programs ("g++"), shared libraries ("libgomp.so.1"); behind a colon the Debian
    # package that does, where its name cannot be guessed ("libmpi.so.40:libopenmpi3").
    system: tuple[str, ...] = ()
    user_path: str = ""  # what the user must name, in words: "a Neon checkout"; "": nothing
    size_mb: int = 0
    verified: datetime.date | None = None
    cheap: bool = False  # one of those that `make test` installs
    wrong: dict[str, str] = Field(
        default_factory=dict
    )  # mode -> what this library is known to get wrong in it
    helper_threads: tuple[str, ...] = ()  # names (a * ends a prefix) of threads that never compute
    image_layout: Literal["NCHW", "NHWC"] = "NCHW"  # of inputs with height and width
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

    @field_validator("pins")
    @classmethod
    def _are_requirements(cls, pins: tuple[str, ...]) -> tuple[str, ...]:
        for pin in pins:
            try:
                Requirement(pin)
            except InvalidRequirement:
                raise ValueError(f"{pin!r} is no requirement, such as 'numpy==1.16.6'") from None
        return pins

    def fits(self, found: str) -> bool:
        """Whether this adapter drives the version that an interpreter has."""
        if self.is_exactly(found):
            return True
        try:
            version = Pep440(found)
        except InvalidVersion:
            return False
        return bool(self.serves and SpecifierSet(self.serves).contains(version, prereleases=True))

    def is_exactly(self, found: str) -> bool:
        """Whether it is the very version that the pins bring; 2.13.0+cpu is 2.13.0."""
        main = next(iter(self.modules.values()), "")
        try:
            version = Pep440(found)
        except InvalidVersion:
            return False
        if self.pin_of(main):
            return not self.differing({main: found})
        return version.public == self.version

    def variables(self, cache: Path | str = "", path: Path | str | None = None) -> dict[str, str]:
        """`environment`, filled in."""
        return {name: value.format(cache=cache, path=path or "") for name, value in self.environment.items()}

    def pin_of(self, distribution: str) -> Requirement | None:
        """What the pins say about a distribution."""
        name = canonicalize_name(distribution)
        return next((one for one in map(Requirement, self.pins) if canonicalize_name(one.name) == name), None)

    def differing(self, installed: dict[str, str]) -> list[str]:
        """The pins among `installed` (distribution -> version) that another version stands for, in words."""
        found = []
        for distribution, version in installed.items():
            pin = self.pin_of(distribution)
            if pin is not None and not pin.specifier.contains(version, prereleases=True):
                found.append(f"{pin} is pinned, and {version} is installed")
        return found


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
        known = ", ".join(one.version for one in self.versions)
        raise InputError(f"{self.name} has no version {word!r}; it has {known}")

    @property
    def stands_alone(self) -> bool:
        """Whether it is a folder without environment.toml: it runs where timetrial runs."""
        return self.versions[0].version == CURRENT

    @property
    def is_shipped(self) -> bool:
        """Whether its name is enough to find it."""
        return self.folder.parent == FRAMEWORKS_FOLDER

    def word(self, version: Version) -> str:
        """What the user types for a version of it."""
        return f"{self.name if self.is_shipped else self.folder}@{version.version}"


def find_framework(word: str) -> tuple[Framework, Version | None]:
    """The framework and version of NAME, NAME@VERSION, or the same with a path to a folder for the name.
    InputError: there is none."""
    name, _, version = (
        word.rpartition("@") if "@" in word and not user_path(word).is_dir() else (word, "", "")
    )
    if "/" in name:
        folder = user_path(name)
        if not (folder / FILE).is_file():
            raise InputError(f"{name!r}: the folder has no {FILE} (see frameworks/README.md)")
        framework = framework_in(folder.resolve())
    else:
        shipped = shipped_frameworks()
        if name not in shipped:
            raise InputError(f"no framework is called {name!r}.{nearest(name, shipped)}")
        framework = shipped[name]
    return framework, framework.version(version) if version else None


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
            name=folder.name, folder=folder, title=folder.name, versions=(Version(version=CURRENT),)
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
        versions = tuple(Version(**_merged(shared, table)) for table in tables)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InputError(f"{file}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
    return Framework(name=folder.name, folder=folder, title=title, versions=versions)


def _merged(shared: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """A version's own words before the shared ones; in `settings` and `environment` for each name alone."""
    both = {**shared, **table}
    for key in ("settings", "environment"):
        if isinstance(shared.get(key), dict) and isinstance(table.get(key), dict):
            both[key] = {**shared[key], **table[key]}
    return both
