"""Rows against each other: who can be told apart, and the letters that say so."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from timetrial.statistics import alike
from timetrial.statistics.alike import letters, told_apart


def pairs(levels: np.ndarray) -> dict[tuple[int, int], list[float]]:
    """Of (heats, rows) logarithms."""
    rows = range(levels.shape[1])
    return {(i, j): (levels[:, i] - levels[:, j]).tolist() for i, j in itertools.combinations(rows, 2)}


def test_rows_that_differ_are_told_apart_and_equal_ones_are_not() -> None:
    rng = np.random.default_rng(5)
    levels = np.log([1.0, 1.0, 1.1, 1.5]) + 0.01 * rng.standard_normal((6, 4))
    assert told_apart(pairs(levels)) == {(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)}


def test_equal_rows_are_seldom_called_different_however_many_there_are() -> None:
    rng = np.random.default_rng(6)
    false = [bool(told_apart(pairs(0.02 * rng.standard_normal((6, 8))))) for _ in range(400)]
    assert np.mean(false) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_an_equal_pair_among_rows_that_differ_is_seldom_called_different() -> None:
    rng = np.random.default_rng(8)
    truth = np.log([1.0, 1.0, 1.5, 2.0])
    false = [(0, 1) in told_apart(pairs(truth + 0.02 * rng.standard_normal((6, 4)))) for _ in range(1000)]
    assert np.mean(false) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 1000)


def test_pairs_of_another_kind_lend_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lent = []
    moderated = alike.moderated
    monkeypatch.setattr(
        alike, "moderated", lambda own, others: lent.append(len(others)) or moderated(own, others)
    )
    ratios = {pair: [0.01, 0.02, 0.03] for pair in itertools.combinations(range(3), 2)}
    told_apart(ratios, {(0, 1): "within", (0, 2): "across", (1, 2): "across"})
    told_apart(ratios)
    assert lent == [0, 1, 1, 2, 2, 2]


def test_two_heats_tell_nobody_apart() -> None:
    assert told_apart({(0, 1): [0.5, 0.5]}) == set()
    assert told_apart({(0, 1): [0.5, 0.5, 0.5]}) == {(0, 1)}
    assert told_apart({(0, 1): [0.0, 0.0, 0.0]}) == set()
    assert told_apart({}) == set()


def test_letters_are_shared_by_those_that_cannot_be_told_apart() -> None:
    everything = set(itertools.combinations(range(3), 2))
    assert letters(3, everything) == ["a", "b", "c"]
    assert letters(3, set()) == ["a", "a", "a"]
    assert letters(3, {(0, 2)}) == ["a", "ab", "b"]  # the middle one is like either
    assert letters(4, {(0, 2), (0, 3), (1, 3)}) == ["a", "ab", "bc", "c"]
    assert letters(0, set()) == [""] * 0


def test_letters_say_what_the_pairs_say() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        rows = int(rng.integers(2, 9))
        all_pairs = list(itertools.combinations(range(rows), 2))
        apart = {pair for pair in all_pairs if rng.random() < 0.6}
        words = letters(rows, apart)
        for first, second in all_pairs:
            assert ((first, second) in apart) == (not set(words[first]) & set(words[second])), (apart, words)
        assert all(words)
