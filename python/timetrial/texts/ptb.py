"""The Penn Treebank's text as language models read it (Mikolov), and other texts of the user's in that form:
one sentence a line, its words apart by blanks.
"""

from __future__ import annotations

from pathlib import Path

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes, find_files, read_text
from timetrial.texts.language import STEPS, language_dataset
from timetrial.texts.words import END, RESERVED

NAMES = [
    ("ptb.train.txt", "train.txt", "wiki.train.tokens"),
    ("ptb.test.txt", "test.txt", "wiki.test.tokens"),
]
RARE = "<unk>"  # what the text itself has for a rare word


def ptb_files(folder: str | None) -> list[Path]:
    """To train on and to test on."""
    return find_files("ptb", folder, NAMES, ("data", "simple-examples/data"))


def load_ptb(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """Words are what is between blanks: the text was prepared by others. Its <unk> is the unknown word."""
    files = ptb_files(folder)
    train, test = (_words(file) for file in files)
    return language_dataset(
        name,
        train,
        test,
        steps or STEPS,
        (str(files[0]), str(files[1])),
        {
            "source": "text with one sentence a line",
            "words": "what is between blanks, as it is written",
            "split": "as published; what is for validation is not read",
            "files_sha256": file_hashes(files),
        },
    )


def _words(file: Path) -> list[str]:
    """With END behind each line."""
    words = []
    for line in read_text(file).splitlines():
        found = line.split()
        if found:
            words += [RESERVED[1] if word == RARE else word for word in found]
            words.append(END)
    return words
