"""Files of a dataset, in a folder that the user names or where it is installed: found plain or gzipped, read
whole, hashed."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from timetrial.dataset_files.verify import verified_folder
from timetrial.errors import InputError
from timetrial.paths import user_path


def find_files(
    dataset: str, folder: str | None, names: Sequence[Sequence[str]], subfolders: Iterable[str]
) -> list[Path]:
    """One existing file for each entry of `names` (its alternatives in order), each plain or with .gz.

    The files may lie in the folder itself or in one of the subfolders that the official archives make.
    Unavailable: there is no folder, and the dataset could be installed.
    """
    wanted = ", ".join(alternatives[0] for alternatives in names)
    installed = verified_folder(dataset) if folder is None else None
    if folder is None and installed is None:
        raise InputError(
            f"The dataset '{dataset}' is read from a folder: set dataset_folder to one that holds {wanted} "
            f"(each plain or with .gz), or keep a copy: timetrial datasets install {dataset} --from FOLDER."
        )
    root = user_path(installed or folder or "")
    if not root.is_dir():
        state = "is not a folder" if root.exists() else "does not exist"
        raise InputError(
            f"The dataset_folder '{folder}' {state}. "
            f"Put these files there: {wanted} (each plain or with .gz)."
        )
    best: tuple[list[Path], list[str]] | None = None
    for place in (root, *(root / name for name in subfolders)):
        found, missing = _look(place, names)
        if not missing:
            return found
        if best is None or len(missing) < len(best[1]):
            best = (found, missing)
    assert best is not None
    raise InputError(
        f"The dataset '{dataset}' lacks {', '.join(best[1])} in '{folder}'. "
        f"Put these files there: {wanted} (each plain or with .gz)."
    )


def _look(place: Path, names: Sequence[Sequence[str]]) -> tuple[list[Path], list[str]]:
    found: list[Path] = []
    missing: list[str] = []
    for alternatives in names:
        candidates = [place / (name + ending) for name in alternatives for ending in ("", ".gz")]
        file = next((candidate for candidate in candidates if candidate.is_file()), None)
        if file is None:
            missing.append(alternatives[0])
        else:
            found.append(file)
    return found, missing


def read_file(file: Path) -> bytes:
    """The content, unpacked if the name ends with .gz."""
    try:
        content = file.read_bytes()
        return gzip.decompress(content) if file.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{file} is not a complete gzip file ({error}): download it again.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None


def read_text(file: Path) -> str:
    """The content as text; a mark of the order of bytes in front is no part of it. InputError: it is not in
    UTF-8."""
    try:
        return read_file(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file} is no text in UTF-8 (byte {error.start}). Convert it, or take it out."
        ) from None


def file_hashes(files: Iterable[Path]) -> dict[str, str]:
    """sha256 of each file as it lies on disk, by name."""
    hashes: dict[str, str] = {}
    for file in files:
        try:
            facts = file.stat()
            hashes[file.name] = _hash(file, facts.st_size, facts.st_mtime_ns)
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    return hashes


@lru_cache(maxsize=64)
def _hash(file: Path, size: int, mtime_ns: int) -> str:
    """Read once per process, unless the file changes: every launch asks again."""
    with file.open("rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
