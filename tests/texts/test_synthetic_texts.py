"""Texts that need no files."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.datasets import load_dataset
from timetrial.errors import InputError
from timetrial.texts.synthetic import FOLLOWERS, WORDS


def test_sentences_are_padded_and_have_a_kind() -> None:
    data = load_dataset("synthetic-sentences")
    for arrays in (data.train, data.test):
        tokens, lengths = arrays["tokens"], arrays["lengths"]
        behind = np.arange(tokens.shape[1])[None, :] >= lengths[:, None]
        assert not tokens[behind].any()
        assert tokens[~behind].min() >= 2
        assert tokens.max() < WORDS
        assert 12 <= lengths.min() < 25
        assert lengths.max() == 100
        assert 0.69 < lengths.mean() / 100 < 0.73
    tokens, lengths, labels = (data.train[name] for name in ("tokens", "lengths", "labels"))
    odd = (tokens % 2).sum(axis=1) / lengths
    assert ((odd > 0.5) == labels).mean() > 0.9  # of the two kinds the one that is more frequent
    assert np.array_equal(load_dataset("synthetic-sentences").train["tokens"], tokens)
    assert load_dataset("synthetic-sentences@1").train["lengths"].max() == 1


def test_a_language_in_which_four_words_may_follow() -> None:
    data = load_dataset("synthetic-language@7")
    assert data.train["tokens"].shape == data.train["labels"].shape == (2048, 7)
    assert np.array_equal(data.train["tokens"][:, 1:], data.train["labels"][:, :-1])
    assert np.array_equal(data.train["tokens"][1:, 0], data.train["labels"][:-1, -1])
    followers: dict[int, set[int]] = {}
    for part in (data.train, data.test):
        for word, label in zip(part["tokens"].reshape(-1), part["labels"].reshape(-1), strict=True):
            followers.setdefault(int(word), set()).add(int(label))
    assert max(map(len, followers.values())) == FOLLOWERS
    assert 2 <= data.train["tokens"].min() <= data.train["labels"].max() < data.classes


def test_translations_say_what_was_read_from_its_end() -> None:
    data = load_dataset("synthetic-pairs@7")
    means: dict[int, int] = {}
    for part in (data.train, data.test):
        rows = zip(
            *(part[name] for name in ("source", "source_lengths", "tokens", "lengths", "labels")), strict=True
        )
        for source, length, tokens, said, labels in rows:
            assert 1 <= length == said - 1 <= 6
            assert not source[length:].any()
            assert not tokens[said:].any()
            assert tokens[0] == 3
            assert np.array_equal(tokens[1:said], labels[:length])
            assert labels[length] == 2
            assert (labels[said:] == -1).all()
            for word, meaning in zip(source[:length][::-1], labels[:length], strict=True):
                assert means.setdefault(int(word), int(meaning)) == meaning
    assert len(set(means.values())) == len(means) > 1000
    assert max(means) < data.classes
    with pytest.raises(InputError, match="expected at least 2"):
        load_dataset("synthetic-pairs@1")
