"""Whose turn it is: no side is favored by its place."""

from __future__ import annotations

import random
from collections import Counter

from timetrial.launch import schedule


def test_two_sides_ride_abba_by_coin() -> None:
    blocks = Counter()
    for seed in range(200):
        rounds = schedule(2, 10, random.Random(seed))
        assert len(rounds) == 10
        for first, second in zip(rounds[::2], rounds[1::2], strict=True):
            assert sorted(first) == sorted(second) == [0, 1]
            assert first != second
            blocks[first] += 1
    assert 400 < blocks[0, 1] < 600  # of 1000 coins


def test_three_sides_ride_in_a_latin_square() -> None:
    for seed in range(50):
        rounds = schedule(3, 9, random.Random(seed))
        for start in (0, 3, 6):
            for place in range(3):
                assert sorted(order[place] for order in rounds[start : start + 3]) == [0, 1, 2]


def test_the_seed_decides() -> None:
    assert schedule(2, 10, random.Random(7)) == schedule(2, 10, random.Random(7))
    assert len({tuple(schedule(2, 10, random.Random(seed))) for seed in range(20)}) > 10
