"""The file that says that an environment is finished, and what it is.

    <environments>/<name>@<version>/timetrial-environment.json

It is written last: a folder without it is never used, and goes when its environment is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import platformdirs
from pydantic import TypeAdapter

from timetrial.environments.catalog import Framework, Version

FILE = "timetrial-environment.json"
FOLDER_VARIABLE = "TIMETRIAL_ENVIRONMENTS"


@dataclass(frozen=True)
class Marker:
    """What is known of an environment. A marker written by hand may say nothing."""

    python: str = ""  # the interpreter; "": the one in the folder
    python_version: str = ""
    created: str = ""  # when, as ISO 8601
    pins: tuple[str, ...] | None = None  # it was made from; None: unknown
    installed: dict[str, str] = field(default_factory=dict)  # distribution -> version, all of them
    path: str = ""  # of the user's own install
    adopted: bool = False  # somebody else's environment: never filled and never removed by us
    size_mb: int = 0


def environments_folder() -> Path:
    """Where environments lie: TIMETRIAL_ENVIRONMENTS, or the user's data folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    # Absolute: contenders are started in folders of their own.
    return Path(named).absolute() if named else Path(platformdirs.user_data_dir("timetrial")) / "environments"


def environment_folder(framework: Framework, version: Version) -> Path:
    """Where an environment lies, whether or not it is there."""
    name = framework.name
    if not framework.is_shipped:  # two people's folders may have one name
        name += f"-{hashlib.sha256(str(framework.folder).encode()).hexdigest()[:8]}"
    return environments_folder() / f"{name}@{version.version}"


def read_marker(folder: Path) -> Marker | None:
    """None: there is no finished environment."""
    try:
        return TypeAdapter(Marker).validate_json((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None


def write_marker(folder: Path, marker: Marker) -> None:
    """Whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / f"{FILE}.half"
    half.write_text(json.dumps(asdict(marker), indent=1), encoding="utf-8")
    os.replace(half, folder / FILE)


def python_of(folder: Path, marker: Marker) -> Path:
    """The interpreter of an environment."""
    return Path(marker.python) if marker.python else folder / "bin" / "python"
