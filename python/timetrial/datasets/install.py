"""Brings the files of a data set here: from a package, or from a folder of the user's, each held against its
sum. One process at a time; whatever happens on the way, nothing half-made is ever seen.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from timetrial.dataset_files.clients import NoRoom, Say, bring
from timetrial.dataset_files.copying import Damaged, copy_file, room_problem
from timetrial.dataset_files.known import KnownDataset
from timetrial.dataset_files.places import (
    FOLDER_VARIABLE,
    Marker,
    datasets_folder,
    installed_folder,
    place_of,
    write_marker,
)
from timetrial.dataset_files.verify import problem_of
from timetrial.datasets.loaders import dataset_source
from timetrial.errors import InputError, TimetrialError, Unavailable


@dataclass(frozen=True)
class Installed:
    """What came of it."""

    new: bool  # False: it was there
    folder: Path
    source: str  # in words
    seconds: float


def silent(words: str) -> None:
    """Nobody listens."""


def install(dataset: KnownDataset, own: Path | None = None, say: Say = silent) -> Installed:
    """From `own` folder, or from the first of its sources that has what it should have.

    InputError: it has no files to install, or those in `own` are others. Unavailable: no source has it here.
    """
    started = time.monotonic()
    copied = bool(dataset.yours) and dataset_source(dataset.name).copied
    if own is not None and dataset.yours and not copied:
        raise InputError(f"The dataset '{dataset.name}' is read where it lies: dataset_folder={own}.")
    if not copied or (own is None and not dataset.sources):
        raise InputError(_why_not(dataset, copied))
    with _locked(dataset, say):
        there = place_of(dataset)
        if own is None and there is not None:
            problem = problem_of(dataset)
            if problem is None:
                return Installed(False, *there, time.monotonic() - started)
            say(f"broken, bringing it anew: {problem}")
        source = _make(dataset, own, say)
    return Installed(True, installed_folder(dataset), source, time.monotonic() - started)


def _why_not(dataset: KnownDataset, copied: bool) -> str:
    if dataset.module:
        return f"The dataset '{dataset.name}' comes with the Python module {dataset.module}: {dataset.cure}"
    if dataset.yours:
        copy = f"timetrial datasets install {dataset.name} --from FOLDER, or " if copied else ""
        return (
            f"No package has the dataset '{dataset.name}'. Name a folder of yours that holds "
            f"{dataset.yours}: {copy}dataset_folder=FOLDER in a run."
        )
    return f"The dataset '{dataset.name}' is made when it is needed: there is nothing to install."


def _make(dataset: KnownDataset, own: Path | None, say: Say) -> str:
    """In a folder beside, renamed at the end. Where it came from."""
    folder = installed_folder(dataset)
    making = folder.with_name(f".making-{dataset.name}")
    shutil.rmtree(making, ignore_errors=True)  # of a process that was killed: nobody else is here
    try:
        files = making / "files"
        files.mkdir(parents=True)
        source, sums = _from_own(dataset, own, files) if own else _from_sources(dataset, making, files, say)
        write_marker(files, Marker(source, _now(), sums))
        if folder.exists():
            folder.rename(making / "old")
        files.rename(folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(_full(dataset)) from None
        raise TimetrialError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return source


def _from_sources(dataset: KnownDataset, making: Path, files: Path, say: Say) -> tuple[str, dict[str, str]]:
    reasons = []
    for number, source in enumerate(one for one in dataset.sources if one.kind != "folder"):
        problem = room_problem(making, dataset.bytes + 2 * source.download_bytes)
        if problem:
            raise NoRoom(f"{problem}. Make room, or set {FOLDER_VARIABLE} to a folder on another disk")
        scratch = making / f"download-{number}"
        scratch.mkdir()
        try:
            return source.words, bring(source, dataset.files, scratch, files, say)
        except NoRoom:
            raise NoRoom(_full(dataset)) from None
        except Unavailable as lacking:
            say(f"not from {source.words}: {lacking}")
            reasons.append(f"{source.words}: {lacking}")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    raise Unavailable(
        f"{'; '.join(reasons)}. Nothing was installed. From files of your own ({dataset.yours}): "
        f"timetrial datasets install {dataset.name} --from FOLDER"
    )


def _from_own(dataset: KnownDataset, own: Path, files: Path) -> tuple[str, dict[str, str]]:
    loader = dataset_source(dataset.name)
    assert loader.files is not None  # `copied` says so
    found = loader.files(str(own))
    if not dataset.files:
        loader.load(str(own), 0)  # nobody has published sums: it must at least be readable
    names = list(dataset.files) or [file.name.removesuffix(".gz") for file in found]
    try:
        sums = {
            name: copy_file(file, files / name, dataset.files.get(name), str(file))
            for name, file in zip(names, found, strict=True)
        }
    except Damaged as error:
        cure = f" To use them as they are: dataset_folder={own}." if dataset.files else ""
        raise InputError(f"{error}. Nothing was installed.{cure}") from None
    return str(own), sums


def _full(dataset: KnownDataset) -> str:
    return (
        f"the disk of {datasets_folder()} is full: {dataset.name} needs {max(1, dataset.bytes // 10**6)} MB "
        f"there, and more while it is unpacked. Make room, or set {FOLDER_VARIABLE} to a folder on "
        "another disk"
    )


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


@contextlib.contextmanager
def _locked(dataset: KnownDataset, say: Say) -> Iterator[None]:
    """One process per data set; the kernel frees the lock of one that dies."""
    path = datasets_folder() / "locks" / dataset.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TimetrialError(f"cannot write {path.parent}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: another process is at {dataset.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
