"""Language models and translation: steps of a long text, pairs of sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from text_formats import mo, r_strings, write_rdb

from timetrial.datasets import Dataset, load_dataset
from timetrial.datasets.facts import facts_of
from timetrial.errors import InputError

TRAIN = " the cat sat \n the <unk> sat on N mats \n\n"
TEST = "a cat sat on the mat \n"
NOVELS = ("EMMA", "MANSFIELD PARK", "NORTHANGER ABBEY", "PERSUASION", "PRIDE AND PREJUDICE", "SENSE")


def in_words(data: Dataset, name: str, numbers: np.ndarray) -> str:
    words = data.vocabularies[name]
    return " ".join("-" if number < 0 else words[number] for number in numbers)


def write_ptb(folder: Path, train: str = TRAIN, test: str = TEST) -> None:
    (folder / "ptb.train.txt").write_text(train)
    (folder / "ptb.test.txt").write_text(test)


def test_each_step_has_the_word_that_comes_next(tmp_path: Path) -> None:
    write_ptb(tmp_path)
    data = load_dataset("ptb@4", str(tmp_path))
    assert [(one.name, one.shape, one.role) for one in data.inputs] == [
        ("tokens", (4,), "input"),
        ("labels", (4,), "target"),
    ]
    assert [in_words(data, "tokens", row) for row in data.train["tokens"]] == [
        "the cat sat <end>",
        "the <unknown> sat on",
    ]
    assert [in_words(data, "tokens", row) for row in data.train["labels"]] == [
        "cat sat <end> the",
        "<unknown> sat on N",
    ]
    assert in_words(data, "tokens", data.test["tokens"][0]) == "<unknown> cat sat on"
    assert data.classes == len(data.vocabularies["tokens"]) == 9
    assert "classes" not in facts_of(data)["train"]


@pytest.mark.attempt
def test_a_text_shorter_than_one_step(tmp_path: Path) -> None:
    write_ptb(tmp_path)
    with pytest.raises(
        InputError, match=r"ptb\.train\.txt has 11 words; expected at least 36: one step of 35.*NAME@STEPS"
    ):
        load_dataset("ptb", str(tmp_path))
    with pytest.raises(InputError, match=r"ptb\.test\.txt has 7 words; expected at least 9"):
        load_dataset("ptb@8", str(tmp_path))
    assert len(load_dataset("ptb@6", str(tmp_path)).test["tokens"]) == 1
    write_ptb(tmp_path, train="")
    with pytest.raises(InputError, match=r"ptb\.train\.txt has 0 words"):
        load_dataset("ptb@6", str(tmp_path))
    (tmp_path / "ptb.train.txt").write_bytes(b"caf\xe9 \n")
    with pytest.raises(InputError, match=r"is no text in UTF-8 \(byte 3\)"):
        load_dataset("ptb@6", str(tmp_path))


def novels() -> list[bytes]:
    return [r_strings([title, "", "It was, she said,", "a fine day.", "", "", "Yes!"]) for title in NOVELS]


def test_novels_out_of_an_r_package(tmp_path: Path) -> None:
    write_rdb(tmp_path / "Rdata.rdb", novels())
    data = load_dataset("austen@5", str(tmp_path))
    assert in_words(data, "tokens", data.train["tokens"][0]) == "emma <end> it was ,"
    assert in_words(data, "tokens", data.test["tokens"][0]) == "<unknown> <unknown> <end> it was"
    # The five others have 8 words in their titles and each 14 more, signs and ends of paragraphs among them.
    assert data.train["tokens"].shape == (15, 5)


@pytest.mark.attempt
@pytest.mark.parametrize("damage", ["cut", "flipped", "no strings", "another package", "empty"])
def test_novels_that_are_none(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "Rdata.rdb"
    write_rdb(file, novels())
    whole = file.read_bytes()
    words = "is no whole file of R's with texts"
    if damage == "cut":
        file.write_bytes(whole[: len(whole) - 30])
    if damage == "flipped":
        file.write_bytes(whole[:20] + bytes(byte ^ 0xFF for byte in whole[20:40]) + whole[40:])
    if damage == "no strings":
        write_rdb(file, [r_strings(["x"]).replace(b"\0\0\0\x10", b"\0\0\0\x0d")])
        words = r"an object of the kind 13; expected strings"
    if damage == "another package":
        write_rdb(file, [r_strings(["WAR AND PEACE"])])
        words = "has the texts WAR AND PEACE; expected six novels"
    if damage == "empty":
        file.write_bytes(b"")
        words = "has the texts of nobody; expected six novels"
    with pytest.raises(InputError, match=words):
        load_dataset("austen", str(tmp_path))


PAIRS = "\n".join(f"word {letter}\tpalabra {letter} !\tCC-BY 2.0" for letter in "abcdefghij") + "\n"


def test_pairs_are_read_one_word_behind(tmp_path: Path) -> None:
    (tmp_path / "spa.txt").write_text(PAIRS + PAIRS)
    (tmp_path / "_about.txt").write_text("not this one")
    data = load_dataset("pairs@4", str(tmp_path))
    assert [(one.name, one.shape, one.role) for one in data.inputs] == [
        ("source", (4,), "input"),
        ("source_lengths", (), "lengths"),
        ("tokens", (4,), "input"),
        ("lengths", (), "lengths"),
        ("labels", (4,), "target"),
    ]
    assert data.description["left_out"] == "10 pairs that come again"
    assert data.train["source"].shape == (8, 4)
    assert data.test["source"].shape == (2, 4)
    for row in range(8):
        letter = in_words(data, "source", data.train["source"][row, 1:2])
        assert in_words(data, "source", data.train["source"][row]) == f"word {letter} <padding> <padding>"
        assert in_words(data, "tokens", data.train["tokens"][row]) == f"<start> palabra {letter} !"
        assert in_words(data, "tokens", data.train["labels"][row]) == f"palabra {letter} ! <end>"
    assert data.train["source_lengths"].tolist() == [2] * 8
    assert data.train["lengths"].tolist() == [4] * 8
    wide = load_dataset("pairs@6", str(tmp_path))
    assert wide.train["labels"][:, 4:].tolist() == [[-1, -1]] * 8
    assert wide.train["tokens"][:, 4:].tolist() == [[0, 0]] * 8
    assert wide.classes == len(wide.vocabularies["tokens"])


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one\tuno\nno tab\n", r"spa\.txt, line 2 has no tab"),
        ("one\tuno\n\t\n two\t \n", r"spa\.txt, line 3: a sentence without words"),
        ("one\tuno\none\tuno\n", "has 1 pairs; expected at least 2"),
        ("", "has 0 pairs; expected at least 2"),
    ],
)
def test_pairs_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "spa.txt").write_text(text)
    with pytest.raises(InputError, match=words):
        load_dataset("pairs", str(tmp_path))


@pytest.mark.attempt
def test_which_file_has_the_pairs_must_be_plain(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has none; expected one file \*\.tsv or \*\.txt"):
        load_dataset("pairs", str(tmp_path))
    for name in ("a.tsv", "b.txt"):
        (tmp_path / name).write_text(PAIRS)
    with pytest.raises(InputError, match=r"has a\.tsv, b\.txt; expected one file"):
        load_dataset("pairs", str(tmp_path))


MESSAGES = {
    "": "Project-Id-Version: gcc\n",
    "context\x04open %s": "abrir %s",
    "%d error\0%d errors": "%d error\0%d errores",
    "close": "cerrar",
    "%s": "%s",
}


@pytest.mark.parametrize("order", ["<", ">"])
def test_messages_with_their_translations(tmp_path: Path, order: str) -> None:
    (tmp_path / "gcc-12.mo").write_bytes(mo(MESSAGES, order))
    data = load_dataset("gcc-messages", str(tmp_path))
    both = np.concatenate([data.train["source"], data.test["source"]])
    assert len(both) == 4
    assert {"abrir", "cerrar", "error"} & {*data.vocabularies["source"]}
    assert not {"errores", "project"} & {*data.vocabularies["source"]}


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no file of translated messages"),
        (mo(MESSAGES)[:60], "is damaged"),
        (mo(MESSAGES)[:-9], "is damaged"),
    ],
)
def test_messages_that_are_damaged(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "gcc-12.mo").write_bytes(content)
    with pytest.raises(InputError, match=words):
        load_dataset("gcc-messages", str(tmp_path))
