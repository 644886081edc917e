"""Whether installed files still are what they were."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path

from timetrial.dataset_files.copying import BLOCK, Damaged, whole
from timetrial.dataset_files.known import KnownDataset, known_datasets
from timetrial.dataset_files.places import place_of, sums_of
from timetrial.errors import InputError, Unavailable


def problem_of(dataset: KnownDataset) -> str | None:
    """What is wrong with the files of a data set that is here, the first thing; None: each has its sum."""
    there = place_of(dataset)
    if there is None:
        return "it is not installed"
    for name, expected in sums_of(dataset).items():
        plain = there[0] / name
        file = plain if plain.is_file() else plain.with_name(f"{name}.gz")
        try:
            facts = file.stat()
            found = _content_sum(file, facts.st_size, facts.st_mtime_ns)
        except OSError as error:
            return f"{plain} cannot be read: {error.strerror}"
        except Damaged as damage:
            return str(damage)
        if found != expected:
            return f"{file} has the sha256 {found}, expected {expected}"
    return None


def verified_folder(name: str) -> Path | None:
    """Where an installed data set lies, each file held against its sum; None: no package brings it, and the
    user has installed none. Unavailable: one could be brought. InputError: it is damaged."""
    dataset = known_datasets()[name]
    there = place_of(dataset)
    if there is None:
        if dataset.sources:
            raise Unavailable(
                f"the dataset '{name}' is not installed: {dataset.cure} (or dataset_folder=FOLDER, "
                f"a folder of yours that holds {dataset.yours})"
            )
        return None
    problem = problem_of(dataset)
    if problem is not None:
        raise InputError(f"The installed dataset '{name}' is damaged: {problem}. {_again(dataset)}")
    return there[0]


def _again(dataset: KnownDataset) -> str:
    more = "" if dataset.sources else " --from FOLDER"
    return f"Bring it anew: timetrial datasets install {dataset.name}{more}"


@lru_cache(maxsize=64)
def _content_sum(file: Path, size: int, mtime_ns: int) -> str:
    """sha256 of the content, unpacked. Read once per process, unless the file changes."""
    digest = hashlib.sha256()
    with whole(str(file)), gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
