"""SpamAssassin's public corpus: 6,046 mails, which are spam and which are not."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np

from timetrial.core import random
from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.files import file_hashes, find_files
from timetrial.errors import InputError
from timetrial.texts.classified import Texts, text_dataset
from timetrial.texts.mails import mail_words

NAME, FILE = "spam-assassin", "mails.tar"
CLASSES = ("ham", "spam")
STEPS, MOST_WORDS = 200, 10_000
HELD_OUT = 5  # one mail of so many is tested on


def spam_files(folder: str | None) -> list[Path]:
    """One tar of all mails."""
    return find_files(NAME, folder, [(FILE,)], ())


def load_spam(name: str, steps: int | None, folder: str | None, seed: int) -> Dataset:
    """Headers are taken off. The folders are of different years, so the split is a random one of all mails;
    of mails that are the same as far as they are read only the first is kept: none is trained on and tested
    on."""
    files = spam_files(folder)
    steps = steps or STEPS
    kept, empty, double = _different(_mails(files[0]), steps)
    order = random.permutation(seed, f"{NAME}/split", len(kept.words))
    tested = len(order) // HELD_OUT
    train, test = np.sort(order[tested:]), np.sort(order[:tested])
    return text_dataset(
        name,
        kept.those([int(place) for place in train]),
        kept.those([int(place) for place in test]),
        len(CLASSES),
        MOST_WORDS,
        steps,
        {
            "source": "mails without headers, their text parts, HTML without its tags",
            "split": f"random, {len(train)} for training and {len(test)} for testing",
            "split_seed": seed,
            "class_names": ", ".join(CLASSES),
            "left_out": f"{empty} mails without words and {double} that begin as another",
            "files_sha256": file_hashes(files),
        },
    )


def _mails(file: Path) -> Texts:
    """In the order of their names."""
    words, labels, names = [], [], []
    try:
        with tarfile.open(file) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                stream = archive.extractfile(member)
                if stream is None:
                    continue
                label = [name in member.name.partition("/")[0] for name in CLASSES]
                if sum(label) != 1:
                    raise InputError(
                        f"{file} has the mail '{member.name}'; expected a folder with ham or with spam in "
                        "its name, which says what the mail is."
                    )
                words.append(mail_words(stream.read()))
                labels.append(label.index(True))
                names.append(f"{file}: {member.name}")
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{file} is no whole tar of mails ({error}).") from None
    if len({*labels}) != len(CLASSES):
        raise InputError(f"{file} has {len(labels)} mails; expected some of ham and some of spam.")
    return Texts(words, np.array(labels, np.int64), names)


def _different(found: Texts, steps: int) -> tuple[Texts, int, int]:
    """Those that begin otherwise than all before them, how many have no words, how many begin alike."""
    seen: set[tuple[str, ...]] = set()
    kept, empty = [], 0
    for place, words in enumerate(found.words):
        key = tuple(words[:steps])
        if not key:
            empty += 1
        elif key not in seen:
            seen.add(key)
            kept.append(place)
    return found.those(kept), empty, len(found.words) - empty - len(kept)
