"""Words, their numbers, and padding."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.dataset_files import memory
from timetrial.errors import InputError
from timetrial.texts.mails import mail_words
from timetrial.texts.padding import padded
from timetrial.texts.words import UNKNOWN, vocabulary_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 1984 !!!", ["it's", "0000", "!"]),
        ("L\u2019\u00c9t\u00e9, enfin...", ["l\u2019\u00e9t\u00e9", ",", "enfin", "."]),
        ("a_b 3.5% --> x", ["a", "_", "b", "0", ".", "0", "%", "-", ">", "x"]),
        (" \t\n", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_the_vocabulary_is_the_same_whatever_the_order_of_texts() -> None:
    texts = [["b", "a", "c"], ["c", "a"], ["d"]]
    one = vocabulary_of(texts, 5)
    assert one == vocabulary_of(texts[::-1], 5)
    assert one.words == ("<padding>", "<unknown>", "a", "c", "b")  # of two as frequent, by their letters
    (numbers,) = one.numbers([["a", "d", "b", "<padding>"]])
    assert numbers.tolist() == [2, UNKNOWN, 4, 0]
    assert vocabulary_of([["<end>", "x"]], 9, always=("<end>",)).words[2:] == ("<end>", "x")


def test_padding_cuts_and_fills() -> None:
    array, lengths = padded([np.array([5, 6, 7]), np.array([8])], 2)
    assert array.tolist() == [[5, 6], [8, 0]]
    assert lengths.tolist() == [2, 1]
    series, lengths = padded([np.ones((1, 3), np.float32), np.ones((4, 3), np.float32)], 4)
    assert series.shape == (2, 4, 3)
    assert series.dtype == np.float32
    assert series.sum(axis=(1, 2)).tolist() == [3, 12]
    assert lengths.tolist() == [1, 4]


@pytest.mark.attempt
def test_an_empty_sequence_is_named() -> None:
    with pytest.raises(InputError, match="Sequence 1 is empty; expected at least one step"):
        padded([np.array([5]), np.array([], np.int64)], 2)
    with pytest.raises(InputError, match=r"b\.txt is empty"):
        padded([np.array([5]), np.array([], np.int64)], 2, ["a.txt", "b.txt"])


@pytest.mark.attempt
def test_more_than_fits_into_memory_is_said_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"SC_PHYS_PAGES": 1_000_000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory.os, "sysconf", small.__getitem__)
    with pytest.raises(
        InputError, match=r"3,000 sequences of 100,000 steps take 2 GB, .* has 4 GB .*NAME@ST"
    ):
        padded([np.array([5])] * 3000, 100_000)


PLAIN = b"From: a@b\nSubject: secret\n\nHello   World\n"
QUOTED = (
    b"Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n<p>so=\nme <b>t=65xt</b>&amp;"
)
BASE64 = b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nYnV5IG5vdw==\n"
PARTS = (
    b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/plain\n\none\n--x\n'
    b"Content-Type: image/gif\n\nGIF89\n--x\nContent-Type: text/html\n\n"
    b"<style>p {color: red}</style><!-- not -->two<script>if (a < b)</script>\n--x--\n"
)
STRANGE = b"Content-Type: text/plain; charset=nobody-knows\n\ncaf\xe9\n"


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        (PLAIN, ["hello", "world"]),
        (QUOTED, ["some", "text", "&"]),
        (BASE64, ["buy", "now"]),
        (PARTS, ["one", "two"]),
        (STRANGE, ["caf\u00e9"]),
        (b"", []),
        (b"Subject: nothing else\n", []),
        (b"\xff\xfe\x00", []),
    ],
)
def test_what_a_mail_says(mail: bytes, words: list[str]) -> None:
    found = mail_words(mail)
    assert found == words or (mail.startswith(b"\xff") and "secret" not in found)
