"""Where installed data sets lie, and the file that says that one is finished.

    <datasets>/<name>/installed.json

A data set is made in a folder beside and renamed into place, so that it is there whole or not at all.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import platformdirs
from pydantic import TypeAdapter

from timetrial.dataset_files.known import KnownDataset
from timetrial.paths import user_path

FILE = "installed.json"
FOLDER_VARIABLE = "TIMETRIAL_DATASETS"


@dataclass(frozen=True)
class Marker:
    """What is known of an installed data set."""

    source: str = ""  # where its files came from, in words
    created: str = ""  # when, as ISO 8601
    sha256: dict[str, str] = field(default_factory=dict)  # of each file


def datasets_folder() -> Path:
    """$TIMETRIAL_DATASETS, otherwise the user's data folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    return user_path(named).absolute() if named else platformdirs.user_data_path("timetrial") / "datasets"


def installed_folder(dataset: KnownDataset) -> Path:
    """Where a data set lies, whether or not it is there."""
    return datasets_folder() / dataset.name


def read_marker(folder: Path) -> Marker | None:
    """None: there is no finished data set."""
    try:
        return TypeAdapter(Marker).validate_json((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None


def write_marker(folder: Path, marker: Marker) -> None:
    """The last thing that is written."""
    (folder / FILE).write_text(json.dumps(asdict(marker), indent=1), encoding="utf-8")


def place_of(dataset: KnownDataset) -> tuple[Path, str] | None:
    """The folder that has all files of a data set, and where they came from: installed, or where a package of
    the machine puts them. None: it is nowhere."""
    folder = installed_folder(dataset)
    marker = read_marker(folder)
    if marker is not None:
        return folder, marker.source
    for source in dataset.sources:
        if source.kind == "folder" and all(_file_in(Path(source.path), name) for name in dataset.files):
            return Path(source.path), source.words
    return None


def sums_of(dataset: KnownDataset) -> dict[str, str]:
    """sha256 that each file must have, unpacked: published, or noted when the user's own were installed."""
    if dataset.files:
        return {name: facts.sha256 for name, facts in dataset.files.items()}
    marker = read_marker(installed_folder(dataset))
    return dict(marker.sha256) if marker else {}


def _file_in(folder: Path, name: str) -> Path | None:
    return next((file for end in ("", ".gz") if (file := folder / (name + end)).is_file()), None)
