"""The content-addressed cache on disk: what is derived from a recipe is made once and never changed.

An entry is a folder named by the hash of its recipe: <cache>/v1/<kind>/<hash>/, with the files and entry.json
(recipe, sizes and hashes). It is made in a temporary folder beside and renamed into place, so that a reader
sees all of it or nothing; when two processes make the same entry, the first one stays and both get it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from timetrial import npy
from timetrial.errors import InputError
from timetrial.paths import user_path

VERSION = "v1"
MANIFEST = "entry.json"
ABANDONED_AFTER_S = 24 * 3600.0  # a temporary folder this old, which nobody holds, is of a process that died

Content = Mapping[str, "npt.NDArray[Any] | Mapping[str, Any] | bytes"]


@dataclass(frozen=True)
class Entry:
    """A complete entry. Files are read-only."""

    key: str
    folder: Path

    def file(self, name: str) -> Path:
        """The absolute path of a file of the entry."""
        return self.folder / name

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array, mapped and not read."""
        return npy.mapped(self.folder / f"{name}.npy")

    def table(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        loaded: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        return loaded

    def recipe(self) -> dict[str, Any]:
        """Of what it was made."""
        made: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))["recipe"]
        return made

    def hashes(self) -> dict[str, str]:
        """sha256 of each file, as it was when the entry was made."""
        files = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {name: facts["sha256"] for name, facts in files.items()}


def cache_folder() -> Path:
    """$TIMETRIAL_CACHE, otherwise the user's cache folder (~/.cache/timetrial)."""
    chosen = os.environ.get("TIMETRIAL_CACHE")
    return user_path(chosen).absolute() if chosen else platformdirs.user_cache_path("timetrial")


def recipe_key(kind: str, recipe: Mapping[str, Any]) -> str:
    """The hash that names an entry."""
    text = json.dumps([kind, recipe], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cached(kind: str, recipe: Mapping[str, Any], make: Callable[[], Content]) -> Entry:
    """The entry of a recipe; `make` gives its arrays (kept as name.npy), tables (name.json) and bytes (as
    they are) if it is new.

    The recipe must hold everything that decides the content. InputError: the cache cannot be written.
    """
    found = find_entry(kind, recipe)
    if found is not None:
        return found
    key = recipe_key(kind, recipe)
    entry = Entry(key, cache_folder() / VERSION / kind / key)
    content = make()
    try:
        _install(entry.folder, recipe, content)
    except OSError as error:
        raise cannot_write(error) from error
    return entry


def find_entry(kind: str, recipe: Mapping[str, Any]) -> Entry | None:
    """The entry of a recipe, if it is there."""
    key = recipe_key(kind, recipe)
    folder = cache_folder() / VERSION / kind / key
    return Entry(key, folder) if _complete(folder) else None


def discard(entry: Entry) -> None:
    """Takes away an entry that does not hold what it should. Whoever reads it now finds files missing."""
    aside = Path(tempfile.mkdtemp(prefix="making-", dir=entry.folder.parent))
    with contextlib.suppress(FileNotFoundError):
        entry.folder.rename(aside / "discarded")
    shutil.rmtree(aside, ignore_errors=True)


def _complete(folder: Path) -> bool:
    """Whether every file is there with its size: a copy that broke off, or a cleaner, may have taken some."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return all((folder / name).stat().st_size == facts["bytes"] for name, facts in files.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _install(folder: Path, recipe: Mapping[str, Any], content: Content) -> None:
    parent = folder.parent
    parent.mkdir(parents=True, exist_ok=True)
    with making(parent) as temporary:
        files = {}
        for name, value in content.items():
            file = _write(temporary, name, value)
            files[file.name] = {"bytes": file.stat().st_size, "sha256": _hash(file)}
        manifest = {"recipe": recipe, "files": files}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        for file in temporary.iterdir():
            file.chmod(0o444)
        temporary.chmod(0o755)
        _put(temporary, folder)


def _put(temporary: Path, folder: Path) -> None:
    """Renames into place. Whoever came first stays; a damaged entry makes way."""
    for _ in range(10):
        try:
            temporary.rename(folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if _complete(folder):
            return
        damaged = Path(tempfile.mkdtemp(prefix="making-", dir=folder.parent))
        with contextlib.suppress(FileNotFoundError):
            folder.rename(damaged / "damaged")
        shutil.rmtree(damaged, ignore_errors=True)
    raise OSError(errno.EBUSY, f"{folder} is damaged and could not be replaced")


def _write(folder: Path, name: str, value: npt.NDArray[Any] | Mapping[str, Any] | bytes) -> Path:
    if isinstance(value, np.ndarray):
        file = folder / f"{name}.npy"
        np.save(file, np.ascontiguousarray(value), allow_pickle=False)
    elif isinstance(value, bytes):
        file = folder / name
        file.write_bytes(value)
    else:
        file = folder / f"{name}.json"
        file.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return file


def _hash(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def making(parent: Path) -> Iterator[Path]:
    """A temporary folder in `parent`, gone behind the block unless it was renamed. It is held: a clock that
    jumps makes it old, but nobody's."""
    _sweep_abandoned(parent)
    temporary = Path(tempfile.mkdtemp(prefix="making-", dir=parent))
    held = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _is_free(held)
        yield temporary
    finally:
        os.close(held)
        shutil.rmtree(temporary, ignore_errors=True)


def _is_free(folder: int) -> bool:
    """And whoever asks holds it from now on. A file system without locks: it is."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno != errno.EWOULDBLOCK
    return True


def _sweep_abandoned(parent: Path) -> None:
    """Takes away what processes that died left behind."""
    for leftover in parent.glob("making-*"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED_AFTER_S:
                held = os.open(leftover, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    if _is_free(held):
                        shutil.rmtree(leftover, ignore_errors=True)
                finally:
                    os.close(held)


def cannot_write(error: OSError) -> InputError:
    """What to say when the cache folder takes no files."""
    folder = cache_folder()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        cure = "Make room there, or set TIMETRIAL_CACHE to a folder on another disk."
    else:
        cure = "Set TIMETRIAL_CACHE to a folder that can be written."
    return InputError(f"The cache folder {folder} cannot be written ({error.strerror or error}). {cure}")
