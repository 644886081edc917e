"""Files of arrays, read without a parser of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetrial
from timetrial import npy

PACKAGE = Path(timetrial.__file__).parent
# Elsewhere: in a contender's only thread. An archive is the user's own, and is read before anything starts.
ELSEWHERE = ("runtime/", "frameworks/", "texts/imdb_numbers.py")

ARRAYS = {
    "f32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "bool": np.array([True, False]),
    "u8": np.arange(7, dtype=np.uint8),
    "big endian": np.arange(4, dtype=">i4"),
    "Fortran": np.asfortranarray(np.arange(24, dtype=np.int64).reshape(2, 3, 4)),
    "one number": np.array(3.5),
    "nothing": np.empty((0, 4), np.float64),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_numpy_saved_is_read(tmp_path: Path, name: str) -> None:
    saved: NDArray[Any] = ARRAYS[name]
    np.save(tmp_path / "a.npy", saved)
    for read in (npy.load(tmp_path / "a.npy"), npy.mapped(str(tmp_path / "a.npy"))):
        assert (read.dtype, read.shape) == (saved.dtype, saved.shape)
        assert np.array_equal(read, saved)
        assert read.flags["F_CONTIGUOUS"] == saved.flags["F_CONTIGUOUS"]
    assert not npy.mapped(tmp_path / "a.npy").flags["WRITEABLE"] or saved.size == 0


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "EOF"),
        (b"text, no array at all", "magic string is not correct"),
        (b"\x93NUMPY\x03\x00" + bytes(100), "version (3, 0)"),
        (b"\x93NUMPY\x01\x00\x05\x00{'a':", "header is not that of an array of numbers"),
        (
            b"\x93NUMPY\x01\x00\x3b\x00{'descr': '<f3', 'fortran_order': False, 'shape': (1,), } \n",
            "data type '<f3' not understood",
        ),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    for read in (npy.load, npy.mapped):
        with pytest.raises(ValueError, match=re.escape(said)):
            read(tmp_path / "a.npy")


@pytest.mark.attempt
@pytest.mark.parametrize("more", [-1, 1])
def test_a_file_of_another_length_is_refused(tmp_path: Path, more: int) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:more] if more < 0 else content + b"x")
    with pytest.raises(ValueError, match="do not go together"):
        npy.load(tmp_path / "a.npy")


def test_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="not that of an array of numbers"):
        npy.load(tmp_path / "a.npy")


def test_nobody_else_parses_python_where_threads_may_be() -> None:
    parsers = re.compile(r"\bnp\.load\(|\bnumpy\.load\(|literal_eval\(|\bast\.parse\(")
    found = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if parsers.search(path.read_text(encoding="utf-8"))
    ]
    assert [one for one in found if not one.startswith(ELSEWHERE)] == []
