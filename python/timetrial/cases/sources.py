"""Where experiments come from: a path, or the name of one that is shipped with timetrial."""

from __future__ import annotations

from pathlib import Path

from timetrial.errors import InputError, nearest
from timetrial.paths import user_path

_PACKAGE = Path(__file__).parents[1]


def shipped_folder() -> Path:
    """benchmarks/ of an installed wheel (inside the package) or of a checkout (beside python/)."""
    installed = _PACKAGE / "benchmarks"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "benchmarks"


def shipped() -> dict[str, Path]:
    """name -> file of every experiment that can be run by name."""
    return {file.stem: file for file in sorted(shipped_folder().glob("*.toml"))}


def find(source: str) -> Path:
    """The file of an experiment's name or path."""
    path = user_path(source)
    if path.is_file():
        return path
    known = shipped()
    if source in known:
        return known[source]
    if source.endswith(".toml") or "/" in source:
        raise InputError(f"There is no experiment file '{source}' (looked in {Path.cwd()}).")
    raise InputError(
        f"There is no experiment '{source}'.{nearest(source, known)} "
        "Give a name, a path to a .toml file, or key=value words alone: network=mlp backend=eigen."
    )
