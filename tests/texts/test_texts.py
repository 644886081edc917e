"""Texts with a label each: mails, folders of the user's, IMDB in both of its forms."""

from __future__ import annotations

import json
import os
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from text_formats import write_imdb_numbers, write_mails, write_tree

from timetrial.datasets import Dataset, load_dataset
from timetrial.errors import InputError
from timetrial.workloads.material import data_entry

HEAD = "Received: from somewhere\nSubject: money\n\n"
MAILS = {
    **{
        f"easy-ham-1/{number:05}.txt": f"{HEAD}the list said {'abcdefgh'[number]} today"
        for number in range(8)
    },
    **{f"spam-1/{number:05}.txt": f"{HEAD}buy {'abcdefgh'[number]} now" for number in range(7)},
}
REVIEWS = {
    "train/neg/0_1.txt": "a bad bad film",
    "train/neg/1_2.txt": "a bad end",
    "train/pos/0_9.txt": "a good film",
    "train/pos/1_8.txt": "good",
    "test/neg/0_3.txt": "an ugly film",
    "test/pos/0_7.txt": "good end",
    "train/unsup/0_0.txt": "nobody knows",
    "train/labeledBow.feat": "9 0:1",
}


def said(data: Dataset, part: str, sample: int) -> str:
    """The words of a sample, as far as its length goes."""
    arrays = data.train if part == "train" else data.test
    words, length = data.vocabularies["tokens"], arrays["lengths"][sample]
    assert not arrays["tokens"][sample, length:].any()
    return " ".join(words[number] for number in arrays["tokens"][sample, :length])


def test_mails_lose_their_headers_and_are_split_at_random(tmp_path: Path) -> None:
    write_mails(tmp_path, {**MAILS, "spam-1/90000.txt": MAILS["spam-1/00003.txt"], "spam-1/90001.txt": HEAD})
    data = load_dataset("spam-assassin", str(tmp_path))
    assert [(one.name, one.shape, one.dtype, one.role) for one in data.inputs] == [
        ("tokens", (200,), "i64", "input"),
        ("lengths", (), "i64", "lengths"),
        ("labels", (), "i64", "target"),
    ]
    assert data.classes == 2
    assert data.train["tokens"].shape == (12, 200)
    assert data.test["tokens"].shape == (3, 200)
    assert data.description["left_out"] == "1 mails without words and 1 that begin as another"
    assert not {"money", "received", "subject"} & {*data.vocabularies["tokens"]}
    for sample, label in enumerate(data.train["labels"]):
        assert said(data, "train", sample).startswith("the list" if label == 0 else "buy")
    again = load_dataset("spam-assassin", str(tmp_path))
    other = load_dataset("spam-assassin", str(tmp_path), seed=1)
    assert np.array_equal(again.train["tokens"], data.train["tokens"])
    assert not np.array_equal(other.train["tokens"], data.train["tokens"])
    short = load_dataset("spam-assassin@2", str(tmp_path))
    assert short.name == "spam-assassin@2"
    assert short.train["lengths"].max() == 2
    assert short.description["left_out"] == "1 mails without words and 8 that begin as another"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("mails", "words"),
    [
        ({"other/1.txt": "\n\nx"}, "has the mail 'other/1.txt'; expected a folder with ham or with spam"),
        ({"ham/1.txt": "\n\nx"}, "has 1 mails; expected some of ham and some of spam"),
    ],
)
def test_mails_of_nobody_knows_what(tmp_path: Path, mails: dict[str, str], words: str) -> None:
    write_mails(tmp_path, mails)
    with pytest.raises(InputError, match=words):
        load_dataset("spam-assassin", str(tmp_path))


@pytest.mark.attempt
def test_a_tar_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "mails.tar").write_bytes(b"<html>moved</html>")
    with pytest.raises(InputError, match=r"mails\.tar is no whole tar of mails"):
        load_dataset("spam-assassin", str(tmp_path))


def test_imdb_as_folders(tmp_path: Path) -> None:
    write_tree(tmp_path / "aclImdb", REVIEWS)
    data = load_dataset("imdb@3", str(tmp_path))
    assert data.vocabularies["tokens"] == ("<padding>", "<unknown>", "a", "bad", "film", "good", "end")
    assert [said(data, "train", sample) for sample in range(4)] == [
        "a bad bad",
        "a bad end",
        "a good film",
        "good",
    ]
    assert data.train["labels"].tolist() == [0, 0, 1, 1]
    assert said(data, "test", 0) == "<unknown> <unknown> film"
    assert data.test["labels"].tolist() == [0, 1]
    assert data.description["cut"] == "1 of 6 to their first 3 steps"
    assert data.description["class_names"] == "neg, pos"


def test_imdb_as_numbers(tmp_path: Path) -> None:
    write_imdb_numbers(tmp_path, [[1, 2, 7000], [3]], [[2, 2]])
    data = load_dataset("imdb", str(tmp_path))
    assert data.train["tokens"].shape == (2, 500)
    assert data.train["tokens"][:, :3].tolist() == [[2, 3, 1], [4, 0, 0]]
    assert data.train["lengths"].tolist() == [3, 1]
    assert data.train["labels"].tolist() == [0, 1]
    assert data.test["tokens"][0, :3].tolist() == [3, 3, 0]
    assert len(data.vocabularies["tokens"]) == 5000
    assert data.vocabularies["tokens"][2] == "#1"
    (tmp_path / "imdb_word_index.json").write_text(json.dumps({"the": 1, "and": 2, "zzz": 60000}))
    assert load_dataset("imdb", str(tmp_path)).vocabularies["tokens"][2:5] == ("the", "and", "#3")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("train", "words"),
    [
        ([[1], []], r"imdb\.npz: text 1 of x_train is empty"),
        ([[0, 1]], "has the number 0; expected a word's place by frequency, from 1"),
        ([[1.5]], "is no list of whole numbers"),
    ],
)
def test_wrong_numbers(tmp_path: Path, train: list[list[int]], words: str) -> None:
    write_imdb_numbers(tmp_path, train, [[1]])
    with pytest.raises(InputError, match=words):
        load_dataset("imdb", str(tmp_path))


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("evil",)


@pytest.mark.attempt
def test_a_pickle_in_numbers_can_call_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_imdb_numbers(tmp_path, [[1]], [[1]])
    with zipfile.ZipFile("imdb.npz") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    start = parts["x_train.npy"].index(b"\x80")
    for instead, words in (
        (pickle.dumps(Evil()), "mkdir"),
        (pickle.dumps([Evil()]), "mkdir"),
        (pickle.dumps([[1]]), "list where an array of lists was expected"),
        (b"\x80\x04nonsense", "cannot be read"),
    ):
        changed = {**parts, "x_train.npy": parts["x_train.npy"][:start] + instead}
        with zipfile.ZipFile("imdb.npz", "w") as archive:
            for name, content in changed.items():
                archive.writestr(name, content)
        with pytest.raises(InputError, match=words):
            load_dataset("imdb", ".")
    assert not (tmp_path / "evil").exists()


@pytest.mark.attempt
@pytest.mark.parametrize(("place", "byte"), [(6, 78), (8, 1), (8, 32), (10, 77)])
def test_a_zip_that_asks_for_what_nobody_has(tmp_path: Path, place: int, byte: int) -> None:
    """A version, a password, a patch, a compression: one byte of its directory."""
    file = write_imdb_numbers(tmp_path, [[1]], [[1]])
    content = bytearray(file.read_bytes())
    for start in (one.start() for one in re.finditer(rb"PK\x01\x02", bytes(content))):
        content[start + place] = byte
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"imdb\.npz cannot be read .*download it again"):
        load_dataset("imdb", str(tmp_path))


@pytest.mark.attempt
def test_numbers_that_are_damaged(tmp_path: Path) -> None:
    file = write_imdb_numbers(tmp_path, [[1]], [[1]])
    whole = file.read_bytes()
    for damage, words in ((whole[: len(whole) // 2], "cannot be read"), (b"", "cannot be read")):
        file.write_bytes(damage)
        with pytest.raises(InputError, match=words):
            load_dataset("imdb", str(tmp_path))
    np.savez(file, x_train=np.array([1]))
    with pytest.raises(InputError, match=r"has no array|no list of whole numbers"):
        load_dataset("imdb", str(tmp_path))


def test_texts_of_the_users(tmp_path: Path) -> None:
    write_tree(
        tmp_path, {f"{kind}/{number}.txt": f"{kind} {number}" for kind in "abc" for number in range(5)}
    )
    data = load_dataset("texts", str(tmp_path))
    assert len(data.train["labels"]) == 12
    assert data.test["labels"].tolist() == [0, 1, 2]
    assert data.description["split"] == "random, one of 5 of each class for testing"


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"a/1.txt": "x", "b/1.txt": " \n"}, r"b.1\.txt is empty"),
        ({"a/1.txt": "x", "b/1.txt": b"\xff\xfe"}, r"b.1\.txt is no text in UTF-8 \(byte 0\)"),
        ({"a/1.txt": "x"}, "sub-folders with texts; expected one for each class, at least 2"),
        ({"a/1.txt": "x", "b/1.pdf": "y"}, r"b has no texts \(\.txt\)"),
    ],
)
def test_texts_that_are_none(tmp_path: Path, texts: dict[str, str | bytes], words: str) -> None:
    write_tree(
        tmp_path, {f"{part}/{name}": text for part in ("train", "test") for name, text in texts.items()}
    )
    with pytest.raises(InputError, match=words):
        load_dataset("texts", str(tmp_path))


def test_the_numbers_lie_in_the_cache_for_everyone(tmp_path: Path) -> None:
    write_tree(tmp_path / "aclImdb", REVIEWS)
    entry = data_entry("imdb", str(tmp_path))
    words = entry.table("vocabularies")["tokens"]
    assert words[2:4] == ["a", "bad"]
    assert entry.array("train_tokens")[0, :4].tolist() == [2, 3, 3, 4]
    assert entry.table("dataset")["checks"]["train"]["classes"] == [2, 2]
    assert data_entry("imdb", str(tmp_path)).key == entry.key
    (tmp_path / "aclImdb" / "train" / "pos" / "1_8.txt").write_text("great")
    changed = data_entry("imdb", str(tmp_path))
    assert changed.key != entry.key
    assert "great" in changed.table("vocabularies")["tokens"]
