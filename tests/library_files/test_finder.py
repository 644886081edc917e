"""Libraries by name: found without loading anything, with the cure where they are missing."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from timetrial.errors import InputError, Unavailable
from timetrial.experiment.doctor import doctor
from timetrial.library_files import available, find, known_at, known_libraries, version_of
from timetrial.library_files import known as known_module
from timetrial.toml import read_toml

ROOT = Path(__file__).parents[2]


@pytest.fixture
def multiarch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of Debian's."""
    folder = tmp_path / "multiarch"
    folder.mkdir()
    monkeypatch.setattr(known_module, "multiarch_folder", lambda: folder)
    return folder


def install(folder: Path, *files: str) -> None:
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(b"\x7fELF")


def test_what_timetrial_depends_on_is_there() -> None:
    assert {"openblas-scipy", "onednn-pypi"} <= set(available())
    path = find("openblas-scipy", "blas")
    assert path.name == "libscipy_openblas.so"
    assert path.is_absolute()
    assert "scipy_openblas32" not in sys.modules  # importing it would load it for everybody
    assert version_of(path) == importlib.metadata.version("scipy-openblas32")


def test_the_pins_are_those_of_the_package() -> None:
    dependencies = read_toml(ROOT / "pyproject.toml")["project"]["dependencies"]
    pinned = [one for one in known_libraries().values() if one.pin]
    assert [one.name for one in pinned] == ["openblas-scipy", "onednn-pypi"]
    assert {f"{one.distribution}=={one.pin}" for one in pinned} <= set(dependencies)


def test_debians_libraries_by_their_own_folders(multiarch: Path) -> None:
    install(multiarch, "openblas-pthread/libopenblas.so.0", "openblas-pthread/libblas.so.3", "libblas.so.3")
    assert find("openblas-pthread") == multiarch / "openblas-pthread/libopenblas.so.0"
    # The alternatives' link and OpenBLAS's front are not the reference BLAS.
    with pytest.raises(Unavailable, match="reference is not installed"):
        find("reference")


def test_blis_is_the_best_that_is_there(multiarch: Path) -> None:
    with pytest.raises(Unavailable) as raised:
        find("blis")
    assert str(raised.value) == "blis is not installed (libblis4-openmp): sudo apt install libblis4-openmp"
    install(multiarch, "blis-serial/libblis.so.4")
    assert find("blis") == find("blis-serial")
    install(multiarch, "blis-openmp/libblis.so.4")
    assert find("blis") == find("blis-openmp")


def test_a_distribution_that_is_missing_or_lost_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_module.importlib.metadata, "files", lambda name: [])
    with pytest.raises(Unavailable) as raised:
        find("openblas-scipy")
    pin = known_libraries()["openblas-scipy"].pin
    assert str(raised.value).endswith(f"{sys.executable} -m pip install scipy-openblas32=={pin}")


def test_the_version_of_a_file(multiarch: Path, tmp_path: Path) -> None:
    install(multiarch, "openblas-serial/libopenblas-r0.3.21.so", "libdnnl.so.2.6", "blis-serial/libblis.so.4")
    (multiarch / "openblas-serial/libopenblas.so.0").symlink_to("libopenblas-r0.3.21.so")
    (multiarch / "libdnnl.so.2").symlink_to("libdnnl.so.2.6")
    assert version_of(find("openblas-serial")) == "0.3.21"
    assert version_of(find("onednn-debian")) == "2.6"
    assert version_of(find("blis-serial")) is None
    library = known_at(multiarch / "libdnnl.so.2.6")  # by another path than the name's
    assert library is not None
    assert library.name == "onednn-debian"
    # The number behind .so is that of an interface, not of a release.
    install(tmp_path, "libgomp.so.1.0.0")
    assert version_of(tmp_path / "libgomp.so.1.0.0") is None


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("openblas-scippy", "no blas library is called 'openblas-scippy'. Did you mean 'openblas-scipy'?"),
        ("onednn-pypi", "no blas library is called 'onednn-pypi'. Known: atlas, blis, blis-openmp"),
        ("", "no blas library is called ''"),
        ("/no/such/libblas.so.3", "there is no such file"),
        ("/usr", "this is not a file"),
        (str(ROOT / "README.md"), "this is not a shared object (no ELF header)"),
    ],
)
def test_bad_words(word: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        find(word, "blas")
    assert said in str(raised.value)


def test_files_that_no_process_here_can_load(tmp_path: Path) -> None:
    headers = {
        "built for another machine, not for": [
            b"\1" + bytes(11) + b"\3\0\3\0",
            b"\2" + bytes(11) + b"\3\0\xf3\0",
        ],
        "an ELF file, but not a shared object": [b"\2" + bytes(11) + b"\1\0\x3e\0"],
        "no ELF header": [b""],
    }
    path = tmp_path / "libother.so"
    for said, ends in headers.items():
        for end in ends:
            path.write_bytes(b"\x7fELF" + end)
            with pytest.raises(InputError, match=said):
                find(str(path))


def test_doctor_names_every_library(multiarch: Path) -> None:
    checks = {check.name: check for check in doctor().checks}
    for name, library in known_libraries().items():
        check = checks[f"library {name}"]
        assert check.state == ("missing" if library.package else "ready") or library.name == "mkl"
        if check.state == "missing":
            assert check.cure == library.cure
