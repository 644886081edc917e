"""Jane Austen's six novels, of which the last is tested on: a language model's text of PTB's size."""

from __future__ import annotations

from pathlib import Path

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes, find_files
from timetrial.errors import InputError
from timetrial.texts.language import STEPS, language_dataset
from timetrial.texts.r_strings import read_string_lists
from timetrial.texts.words import END, words_of

FILE = "Rdata.rdb"
NOVELS = 6
TESTED = "NORTHANGER ABBEY"  # its first line


def austen_files(folder: str | None) -> list[Path]:
    """One file with all lines of all novels."""
    return find_files("austen", folder, [(FILE,)], ("data",))


def load_austen(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """An empty line is the end of a paragraph; the split is by novels, so the seed plays no role."""
    files = austen_files(folder)
    novels = read_string_lists(files[0])
    tested = [one for one in novels if one and one[0] == TESTED]
    if len(novels) != NOVELS or len(tested) != 1:
        titles = ", ".join(one[0] for one in novels if one)
        raise InputError(
            f"{files[0]} has the texts {titles or 'of nobody'}; expected six novels, one of them {TESTED}."
        )
    trained = [one for one in novels if one is not tested[0]]
    return language_dataset(
        name,
        [word for novel in trained for word in _words(novel)],
        _words(tested[0]),
        steps or STEPS,
        (str(files[0]), str(files[0])),
        {
            "source": "the lines of Jane Austen's six novels",
            "split": "by novels: Northanger Abbey for testing, the others for training",
            "files_sha256": file_hashes(files),
        },
    )


def _words(lines: list[str]) -> list[str]:
    """With END behind each paragraph."""
    words: list[str] = []
    for line in lines:
        found = words_of(line)
        if found:
            words += found
        elif words and words[-1] != END:
            words.append(END)
    return words
