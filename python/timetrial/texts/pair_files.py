"""Pairs of sentences from files: tab-separated ones of the user's, and the messages of a program with their
translations (gettext's .mo).
"""

from __future__ import annotations

import struct
from pathlib import Path

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes, find_files, read_file, read_text
from timetrial.dataset_files.trees import root_of
from timetrial.errors import InputError
from timetrial.texts.pairs import STEPS, Pair, pair_dataset
from timetrial.texts.words import words_of

LAYOUT = "one file *.tsv or *.txt: a pair a line, apart by a tab"
MESSAGES, MESSAGES_FILE = "gcc-messages", "gcc-12.mo"
MAGIC = 0x950412DE


def _pairs_files(folder: str | None) -> list[Path]:
    """The one of the user's folder; what is called about something (_about.txt) is none."""
    root = root_of("pairs", folder, LAYOUT)
    found = sorted(
        one
        for end in ("*.tsv", "*.txt", "*.tsv.gz", "*.txt.gz")
        for one in root.glob(end)
        if not one.name.startswith("_")
    )
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise InputError(f"'{folder}' has {names}; expected {LAYOUT}.")
    return found


def pairs_key(folder: str | None) -> dict[str, str]:
    """What decides the content, for the cache."""
    return file_hashes(_pairs_files(folder))


def load_pairs(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """As Tatoeba's pairs are handed out (Manythings): what is behind a second tab is not read."""
    files = _pairs_files(folder)
    description = {"source": "pairs apart by a tab", "files_sha256": file_hashes(files)}
    return pair_dataset(name, _tabbed(files[0]), steps or STEPS, seed, description)


def _tabbed(file: Path) -> list[Pair]:
    pairs = []
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        if not line.strip():
            continue
        one, *others = line.split("\t")
        if not others:
            raise InputError(f"{file}, line {number} has no tab; expected two sentences apart by one.")
        pairs.append((one, others[0], f"{file}, line {number}"))
    return pairs


def messages_files(folder: str | None) -> list[Path]:
    """What GCC says in Spanish."""
    return find_files(MESSAGES, folder, [(MESSAGES_FILE,)], ())


def load_messages(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """Spanish to English. Of a message that has a plural the singular; one without a letter on either side,
    and the entry about the file itself, are left out."""
    files = messages_files(folder)
    pairs = [
        (spanish, english, f"{files[0]}: {english!r}")
        for english, spanish in read_messages(files[0])
        if english and words_of(english) and words_of(spanish)
    ]
    description = {
        "source": "a program's messages in Spanish, and in English",
        "files_sha256": file_hashes(files),
    }
    return pair_dataset(name, pairs, steps or STEPS, seed, description)


def read_messages(file: Path) -> list[tuple[str, str]]:
    """Each message and what it is in the other language (GNU gettext, The Format of GNU MO Files)."""
    content = read_file(file)
    for order in "<>":
        if content[:4] == struct.pack(f"{order}I", MAGIC):
            break
    else:
        raise InputError(f"{file} is no file of translated messages (.mo).")
    try:
        count, originals, translations = struct.unpack_from(f"{order}3I", content, 8)
        return [
            (
                _message(content, order, originals + 8 * number),
                _message(content, order, translations + 8 * number),
            )
            for number in range(count)
        ]
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise InputError(f"{file} is damaged ({error}): download it again.") from None


def _message(content: bytes, order: str, place: int) -> str:
    """Without its context (before \\x04) and its plural (behind \\0)."""
    length, start = struct.unpack_from(f"{order}2I", content, place)
    if start + length > len(content):
        raise IndexError("a message behind its end")
    text = content[start : start + length].decode("utf-8")
    return text.rpartition("\x04")[2].partition("\0")[0]
