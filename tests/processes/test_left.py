"""Whatever a contender leaves where an array should be, and however it leaves its folders."""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from launching import make_plan

from timetrial.launch.contact import LaunchContact
from timetrial.processes.launch_folder import written_to_home
from timetrial.processes.left import IN_MEMORY_BYTES, empty, files_below, printable, read_array, remove
from timetrial.processes.outcome import LaunchError

MOST = 8 * IN_MEMORY_BYTES


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


WHOLE = npy(np.arange(1000, dtype=np.float32))


@pytest.mark.attempt
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "i8", "u1", "?"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4, 5), (1024, 1024)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numbers_are_read(tmp_path: Path, dtype: str, shape: tuple[int, ...], order: str) -> None:
    wanted = np.asarray(np.random.default_rng(1).integers(0, 100, shape).astype(dtype), order=order)
    np.save(tmp_path / "a.npy", wanted)
    found = read_array(tmp_path / "a.npy", MOST)
    (tmp_path / "a.npy").write_bytes(b"")  # what happens later changes nothing
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype
    assert os.listdir(tmp_path) == ["a.npy"]


def plant_file(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def plant_sparse(path: Path) -> None:
    path.write_bytes(WHOLE)
    os.truncate(path, 4 << 40)


PLANTED: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "empty": plant_file(b""),
    "text": plant_file(b"0.1 0.2 0.3\n"),
    "truncated": plant_file(WHOLE[:-1]),
    "header only": plant_file(WHOLE[:64]),
    "longer": plant_file(WHOLE + b"\0"),
    "4 TiB": plant_sparse,
    "folder": lambda path: path.mkdir(),
    "fifo": lambda path: os.mkfifo(path),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "objects": plant_file(npy(np.array([{"a": 1}], dtype=object))),
    "structure": plant_file(npy(np.zeros(3, "f4,i4"))),
    "words": plant_file(npy(np.array(["a", "b"]))),
    "times": plant_file(npy(np.zeros(3, "M8[s]"))),
    "complex": plant_file(npy(np.zeros(3, "c8"))),
    "huge shape": plant_file(WHOLE.replace(b"(1000,)", b"(9**9,)")),
    "many numbers": plant_file(WHOLE.replace(b"(1000,), }  ", b"(10**18,), }")),
    "negative shape": plant_file(WHOLE.replace(b"(1000,)", b"(-100,)")),
    "nested header": plant_file(b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000),
    "long header": plant_file(b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 31) + b"{" * 100),
    "other version": plant_file(b"\x93NUMPY\x09\x00" + WHOLE[8:]),
    "zip": plant_file(b"PK\x03\x04" + bytes(100)),
}


@pytest.mark.attempt
@pytest.mark.parametrize("name", PLANTED)
def test_anything_else_is_the_launch_s_own_end(tmp_path: Path, name: str) -> None:
    PLANTED[name](tmp_path / "a.npy")
    with pytest.raises(LaunchError) as caught:
        read_array(tmp_path / "a.npy", MOST)
    assert caught.value.outcome == "crash"
    assert caught.value.reason.startswith("protocol: it left no readable a.npy: ")


@pytest.mark.attempt
@example(place=50, value=98, length=128)  # a key of bytes among those of text
@given(place=st.integers(0, 127), value=st.integers(0, 255), length=st.integers(0, len(WHOLE)))
def test_damaged_headers_end_in_words(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int, length: int
) -> None:
    data = bytearray(WHOLE)
    data[place] = value
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(data[:length])
    with contextlib.suppress(LaunchError):
        assert read_array(path, MOST).nbytes == len(WHOLE) - 128


@pytest.mark.attempt
def test_folders_of_any_kind_are_removed(tmp_path: Path) -> None:
    deep = tmp_path / "left"
    deep.mkdir()
    inner = os.open(deep, os.O_RDONLY)
    for _ in range(1500):  # a path of 15,000 bytes
        os.mkdir("ten_bytes_", dir_fd=inner)
        following = os.open("ten_bytes_", os.O_RDONLY, dir_fd=inner)
        os.close(inner)
        inner = following
    os.close(inner)
    (deep / "closed").mkdir()
    (deep / "closed" / "file").write_text("x")
    (deep / "closed").chmod(0)
    (deep / os.fsdecode(b"\xff\xfe")).write_text("x")
    (deep / "away").symlink_to(tmp_path / "stays")
    (tmp_path / "stays").mkdir()
    assert sum(1 for _ in files_below(deep)) >= 1
    remove(deep)
    assert sorted(os.listdir(tmp_path)) == ["stays"]
    remove(deep)  # gone already


@pytest.mark.attempt
def test_names_that_are_no_text_are_printable(tmp_path: Path) -> None:
    assert printable(Path("a b/ü.txt")) == "a b/ü.txt"
    (tmp_path / os.fsdecode(b"caf\xe9\n\x1b[31m")).write_text("x" * 10)
    (said,) = written_to_home(tmp_path)
    said.encode()
    assert said.isprintable()
    assert r"caf\xe9\n\x1b[31m 10" in said


@pytest.mark.attempt
def test_only_the_folder_itself_is_emptied(tmp_path: Path) -> None:
    """And not what its contender puts in its place."""
    own, victim = tmp_path / "own", tmp_path / "victim"
    for folder in (own, victim):
        folder.mkdir()
        (folder / "a.npy").write_bytes(WHOLE)
    (own / "deep").mkdir()
    (own / "link").symlink_to(victim)
    descriptor = os.open(own, os.O_RDONLY | os.O_DIRECTORY)
    own.rename(tmp_path / "elsewhere")
    own.symlink_to(victim)
    try:
        empty(descriptor)
    finally:
        os.close(descriptor)
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["deep"]
    assert [path.name for path in victim.iterdir()] == ["a.npy"]


@pytest.mark.attempt
@pytest.mark.parametrize("put", ["link", "folder", "nothing"])
def test_what_stands_in_the_place_of_dumps_gets_none(tmp_path: Path, put: str) -> None:
    plan = make_plan(tmp_path / "launch", "eigen")
    plan.folder.mkdir()
    contact = LaunchContact(lambda *_: pytest.fail("it was asked"), None, None, plan, "judged", None)  # type: ignore
    folder, _ = contact._place()
    folder.rename(tmp_path / "moved")
    if put == "link":
        folder.symlink_to(tmp_path)
    elif put == "folder":
        folder.mkdir()
    with pytest.raises(LaunchError, match="nothing can be put into its folder any more"):
        contact.dump("parameters")
    contact.close()
    assert (tmp_path / "moved").is_dir()
