"""Words of a text, and their numbers: one way for all texts, so that every contender reads the same ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PADDING, UNKNOWN = 0, 1  # numbers that no word has: behind the end of a text; of a word not in the vocabulary
END, START = "<end>", "<start>"
RESERVED = ("<padding>", "<unknown>")
WORDS_ARE = "lower case; letters, digits (each as 0), or a sign, repeated signs once"

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\d+|([^\w\s]|_)\1*")
_DIGIT = re.compile(r"\d")


def words_of(text: str) -> list[str]:
    """As `WORDS_ARE` says: "It's 1984 !!!" is it's, 0000 and !."""
    return [_short(match) for match in _WORD.finditer(text.lower())]


def _short(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[1]
    return _DIGIT.sub("0", match[0])


@dataclass(frozen=True)
class Vocabulary:
    """Words by their numbers; the first are RESERVED."""

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        """All numbers are below it."""
        return len(self.words)

    def numbers(self, texts: Iterable[Sequence[str]]) -> list[npt.NDArray[np.int64]]:
        """Of each text its words' numbers; UNKNOWN for what is not in the vocabulary."""
        number = {word: place for place, word in enumerate(self.words)}
        return [np.array([number.get(word, UNKNOWN) for word in text], np.int64) for text in texts]


def vocabulary_of(texts: Iterable[Sequence[str]], most: int, always: Sequence[str] = ()) -> Vocabulary:
    """The words of the texts to train on, the most frequent first (of two as frequent, in the order of their
    letters), as many as make `most` numbers; before them those that are `always` in it."""
    counts = Counter(word for text in texts for word in text)
    first = (*RESERVED, *always)
    rest = sorted((word for word in counts if word not in first), key=lambda word: (-counts[word], word))
    return Vocabulary((*first, *rest)[:most])


def unknown_share(tokens: Iterable[npt.NDArray[np.int64]]) -> str:
    """'2.1 % of the words'."""
    found, all_ = 0, 0
    for one in tokens:
        found += int((one == UNKNOWN).sum())
        all_ += int((one != PADDING).sum())
    return f"{100 * found / max(1, all_):.1f} % of the words to train on"
