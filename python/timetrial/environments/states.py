"""How things stand with every version of every framework on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from timetrial.environments import discovery
from timetrial.environments.catalog import Framework, Version
from timetrial.environments.checking import problem_of
from timetrial.environments.install import check_environment
from timetrial.environments.interpreters import running_interpreter
from timetrial.environments.locate import NOT_INSTALLED, in_current, install_command, locate
from timetrial.environments.marker import environment_folder, read_marker
from timetrial.environments.needs import Lacking, check_system
from timetrial.errors import Unavailable

Word = Literal["installed", "current", "available", "lacking", "broken"]
READY = ("installed", "current")


@dataclass(frozen=True)
class State:
    """One version of one framework."""

    name: str  # with the version: "tensorflow@1.15.5"
    title: str
    state: Word
    detail: str  # the interpreter that has it or would get it, or what is lacking
    cure: str  # "": nothing is wrong
    modes: tuple[str, ...]
    python: str  # the range that its packages exist for
    size_mb: int
    measured: bool  # whether the size was measured here or stands in environment.toml
    verified: str
    cheap: bool

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def state_of(framework: Framework, version: Version) -> State:
    """Imports nothing and runs no framework: whether it works, `check` says."""
    word, detail, cure = _word(framework, version)
    marker = read_marker(environment_folder(framework, version))
    size = marker.size_mb if marker else 0
    return State(
        name=f"{framework.name}@{version.version}",
        title=framework.title,
        state=word,
        detail=detail,
        cure=cure,
        modes=version.modes,
        python=version.python,
        size_mb=size or version.size_mb,
        measured=size > 0,
        verified=version.verified.isoformat() if version.verified else "",
        cheap=version.cheap,
    )


def _word(framework: Framework, version: Version) -> tuple[Word, str, str]:
    folder = environment_folder(framework, version)
    marker = read_marker(folder)
    if marker is not None:
        try:
            python = locate(framework, version.version, None).interpreter
        except Lacking as broken:
            return "broken", broken.reason.removeprefix("broken: "), broken.cure
        whose = f", {marker.path or python.executable}" if marker.adopted or marker.path else ""
        return "installed", f"Python {python.version}{whose}" if python.is_python else whose[2:], ""
    if framework.stands_alone or in_current(framework, version) is not None:
        return "current", f"Python {running_interpreter().version}, the running one", ""
    return _could_be(framework, version)


def _could_be(framework: Framework, version: Version) -> tuple[Word, str, str]:
    install = install_command(framework, version)
    try:
        check_system(version)
        if version.user_path:
            return "lacking", f"needs {version.user_path}", install
        one = discovery.fitting(version.python)
    except Lacking as lacking:
        return "lacking", lacking.reason, lacking.cure
    return "available", f"Python {one.version} ({one.where})", install


def can_be_installed(framework: Framework, version: Version) -> bool:
    """Whether `install` would find everything it needs here, but for the network."""
    return _word(framework, version)[0] in ("available", "broken", *READY)


def check(framework: Framework, version: Version) -> str | None:
    """What is wrong with an installed version; None: a contender could start. Imports it, which takes time.

    Unavailable: it is not installed.
    """
    folder = environment_folder(framework, version)
    marker = read_marker(folder)
    if marker is not None:
        return check_environment(framework, version, folder, marker)
    located = locate(framework, version.version, None)
    return problem_of(framework, version, located.interpreter, located.path, pinned=False)


@dataclass(frozen=True)
class Summary:
    """One framework, all its versions, in a line."""

    ready: tuple[str, ...]  # versions; of the running interpreter: "2.13.0 (current)"
    lacking: tuple[str, ...]
    broken: tuple[str, ...]  # "1.12.0: why"
    cure: str  # one command for what is lacking or broken; "": nothing is

    @property
    def words(self) -> str:
        """As `timetrial list backends` has it."""
        parts = [f"ready: {', '.join(self.ready)}"] if self.ready else []
        parts += [f"broken: {one}" for one in self.broken]
        parts += [f"{NOT_INSTALLED}: {', '.join(self.lacking)}"] if self.lacking else []
        return "; ".join(parts) + (f" ({self.cure})" if self.cure else "")


def summary(framework: Framework) -> Summary:
    """Quick: no interpreter is looked for."""
    ready, lacking, broken = [], [], []
    wanted: list[Version] = []
    try:  # the running interpreter may have a version that no line of environment.toml names
        current = locate(framework, "current", None)
        has = next(iter(current.found.values()), None) or "?"
        ready.append(f"{has if current.version.modules else ''} (current)".strip())
    except Unavailable:
        current = None
    for version in framework.versions:
        try:
            located = locate(framework, version.version, None)
        except Lacking as reason:
            wanted.append(version)
            if read_marker(environment_folder(framework, version)) is None:
                lacking.append(version.version)
            else:
                broken.append(f"{version.version}: {reason.reason.removeprefix('broken: ')}")
        else:
            if located.source == "installed":
                ready.append(version.version)
    return Summary(tuple(ready), tuple(lacking), tuple(broken), _one_command(framework, wanted))


def _one_command(framework: Framework, versions: list[Version]) -> str:
    """A version that needs a folder of the user's has a command of its own; it is last."""
    plain = [version for version in versions if not version.user_path]
    if plain:
        return f"timetrial frameworks install {' '.join(framework.word(version) for version in plain)}"
    return install_command(framework, versions[0]) if versions else ""
