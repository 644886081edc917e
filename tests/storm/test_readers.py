"""Whatever stands in a file: each reader takes it, or says in words why not. Nothing else leaves it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import READERS, Reader

from timetrial.errors import TimetrialError
from timetrial.processes.outcome import LaunchError

# What parsers trip over: numbers out of every range, nesting, half characters, NUL, foreign types.
TOKENS = [
    b"0", b"-1", b"1e999", b"NaN", b"-Infinity", b"null", b"true", b'""', b"[]", b"{}", b"[" * 3000,
    b"{" * 50, b"9" * 5000, b"9" * 20, b"\xff\xfe", b"\x00", b"\xed\xa0\x80", b'"\\ud800"', b"\n", b"=", b'"',
    b"'''", b".", b"..", b"/", b"\\", b"[[", b"]]", b"#", b",", b"1979-05-27T07:32:00Z", b"0x10", b"inf",
    b'["a", 1]', b"'a'",
]  # fmt: skip
CHANGE = st.tuples(
    st.sampled_from(["replace", "insert", "remove", "cut", "byte", "repeat"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 40),
    st.sampled_from(TOKENS) | st.binary(max_size=8),
)


def changed(document: bytes, changes: list[tuple[str, float, int, bytes]]) -> bytes:
    for kind, share, length, token in changes:
        place = int(share * (len(document) + 1))
        before, this, behind = document[:place], document[place : place + length], document[place + length :]
        document = {
            "replace": before + token + behind,
            "insert": before + token + this + behind,
            "remove": before + behind,
            "cut": before,
            "byte": before + token[:1] + document[place + 1 :],
            "repeat": before + this + this + behind,
        }[kind]
    return document


def tried(reader: Reader, document: bytes) -> str:
    """'' where it is taken; otherwise the words."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "folder"
        if reader.others is not None:
            shutil.copytree(reader.others, folder)
        path = folder / reader.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document)
        try:
            reader.read(path)
        except TimetrialError as error:
            return str(error)
        except LaunchError as error:
            return error.reason
        return ""


@pytest.mark.parametrize("name", READERS)
def test_what_it_is_made_for_is_taken(name: str) -> None:
    assert tried(READERS[name], READERS[name].document) == ""


@pytest.mark.attempt
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(changes=st.lists(CHANGE, min_size=1, max_size=4))
def test_anything_else_is_taken_or_refused_in_words(
    name: str, changes: list[tuple[str, float, int, bytes]]
) -> None:
    words = tried(READERS[name], changed(READERS[name].document, changes))
    assert "Traceback" not in words
    assert len(words) < 20_000


@pytest.mark.attempt
@pytest.mark.full
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=1500, deadline=None, database=None)
@given(changes=st.lists(CHANGE, min_size=1, max_size=6))
def test_anything_else_again_and_again(name: str, changes: list[tuple[str, float, int, bytes]]) -> None:
    assert len(tried(READERS[name], changed(READERS[name].document, changes))) < 20_000
