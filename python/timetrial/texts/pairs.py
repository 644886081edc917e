"""Translation: sentences of one language, and what they are in another. The second is read word by word while
it is predicted (teacher forcing): step t reads word t - 1 and predicts word t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timetrial.core import Input, random
from timetrial.dataset_files.dataset import Arrays, Dataset
from timetrial.errors import InputError
from timetrial.texts.padding import NOT_COUNTED, cut_in_words, lengths_in_words, lengths_input, padded
from timetrial.texts.words import END, START, WORDS_ARE, Vocabulary, unknown_share, vocabulary_of, words_of

STEPS, MOST_WORDS = 20, 5_000
HELD_OUT = 5  # one pair of so many is tested on: DLBench's share
FEWEST = 2

Pair = tuple[str, str, str]  # a sentence, what it is in the other language, and where the two are from
Words = tuple[list[str], list[str]]


def pair_inputs(steps: int) -> tuple[Input, ...]:
    """What a sample has, in both languages of so many words at most."""
    return (
        Input("source", (steps,), "i64"),
        lengths_input("source_lengths"),
        Input("tokens", (steps,), "i64"),
        lengths_input(),
        Input("labels", (steps,), "i64", "target"),
    )


def pair_dataset(
    name: str, pairs: Sequence[Pair], steps: int, seed: int, description: Mapping[str, Any]
) -> Dataset:
    """`source`, `source_lengths`, `tokens`, `lengths` and `labels`; a sentence is cut to `steps` words, and
    a translation to one less, so that its end is predicted, too. Pairs that come twice are left out."""
    found = _different(pairs, steps)
    if len(found) < FEWEST:
        raise InputError(f"'{name}' has {len(found)} pairs; expected at least {FEWEST}.")
    order = random.permutation(seed, f"{name}/split", len(found))
    tested = max(1, len(order) // HELD_OUT)
    parts = [[found[place] for place in np.sort(part)] for part in (order[tested:], order[:tested])]
    sources = vocabulary_of((one for one, _ in parts[0]), MOST_WORDS)
    targets = vocabulary_of((other for _, other in parts[0]), MOST_WORDS, always=(END, START))
    train, test = (_arrays(part, sources, targets, steps) for part in parts)
    return Dataset(
        name=name,
        inputs=pair_inputs(steps),
        train=train,
        test=test,
        classes=targets.size,
        description={
            "words": WORDS_ARE,
            **description,
            "split": f"random, {len(parts[0])} for training and {len(parts[1])} for testing",
            "split_seed": seed,
            "left_out": f"{len(pairs) - len(found)} pairs that come again",
            "vocabulary": f"{sources.size:,} numbers of the first language, {targets.size:,} of the second",
            "unknown_words": unknown_share([train["source"]]),
            "lengths": lengths_in_words(train["source_lengths"], steps),
            "lengths_of_translations": lengths_in_words(train["lengths"], steps),
            "cut": cut_in_words([np.array(one) for pair in found for one in pair], steps),
        },
        vocabularies={"source": sources.words, "tokens": targets.words},
    )


def _different(pairs: Sequence[Pair], steps: int) -> list[Words]:
    """In words; of those that are the same, as far as they are read, the first."""
    found: dict[tuple[tuple[str, ...], ...], Words] = {}
    for one, other, place in pairs:
        words = words_of(one), words_of(other)
        if not all(words):
            raise InputError(f"{place}: a sentence without words; expected two sentences. Take the pair out.")
        found.setdefault((tuple(words[0][:steps]), tuple(words[1][: steps - 1])), words)
    return list(found.values())


def _arrays(pairs: Sequence[Words], sources: Vocabulary, targets: Vocabulary, steps: int) -> Arrays:
    source, source_lengths = padded(sources.numbers([one for one, _ in pairs]), steps)
    said = [other[: steps - 1] for _, other in pairs]
    tokens, lengths = padded(targets.numbers([[START, *other] for other in said]), steps)
    labels, _ = padded(targets.numbers([[*other, END] for other in said]), steps, filling=NOT_COUNTED)
    return {
        "source": source,
        "source_lengths": source_lengths,
        "tokens": tokens,
        "lengths": lengths,
        "labels": labels,
    }
