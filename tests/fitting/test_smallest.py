"""The search for the smallest size: what it finds is enough, and a little less is not."""

from __future__ import annotations

import random

import pytest

from timetrial.fitting.search import PAGE, Bracket, smallest

MB = 1 << 20


class Needs:
    """A contender that runs in so much; `scatter`: a fraction, of what it needs from launch to launch."""

    def __init__(self, size: int, scatter: float = 0.0, seed: int = 1):
        self.size, self.scatter = size, scatter
        self.asked: list[int] = []
        self._random = random.Random(seed)

    def __call__(self, size: int) -> bool:
        self.asked.append(size)
        assert size % PAGE == 0
        return size >= self.size * (1 + self.scatter * self._random.random())


@pytest.mark.parametrize("guess", [1, 10 * MB, 97 * MB, 3000 * MB])
@pytest.mark.parametrize("precision", [0.02, 0.001])
def test_it_is_enclosed(guess: int, precision: float) -> None:
    needs = Needs(100 * MB)
    found = smallest(needs, guess, MB, 4096 * MB, precision)
    assert found is not None
    assert found.short is not None
    assert found.short < needs.size <= found.enough
    assert found.enough <= found.short * (1 + precision) + PAGE
    assert needs.asked[-1] == found.enough  # confirmed
    assert len(needs.asked) < 45


def test_a_good_guess_is_quick() -> None:
    needs = Needs(100 * MB)
    smallest(needs, 97 * MB, MB, 4096 * MB, 0.02)
    assert len(needs.asked) <= 9


def test_twice_the_same_within_three_percent() -> None:
    for seed in range(50):
        found = [
            smallest(Needs(100 * MB, 0.005, 2 * seed + turn), 80 * MB, MB, 4096 * MB, 0.02) for turn in (0, 1)
        ]
        first, second = (one.enough for one in found if one)
        assert abs(first / second - 1) < 0.03


def test_the_least_may_be_enough() -> None:
    assert smallest(Needs(1), 50 * MB, MB, 4096 * MB, 0.02) == Bracket(MB, None)


def test_the_most_may_be_too_little() -> None:
    assert smallest(Needs(5000 * MB), 50 * MB, MB, 4096 * MB, 0.02) is None


def test_what_was_enough_by_luck_is_not_believed() -> None:
    tries = {"of 64": 0}

    def lucky(size: int) -> bool:
        """Of 64 MB it says yes once."""
        if size == 64 * MB:
            tries["of 64"] += 1
            return tries["of 64"] == 1
        return size > 64 * MB

    found = smallest(lucky, 64 * MB, 60 * MB, 4096 * MB, 0.1)
    assert found is not None
    assert found.enough > 64 * MB


def test_who_never_runs_twice_has_no_size() -> None:
    seen: set[int] = set()

    def never_again(size: int) -> bool:
        first = size not in seen
        seen.add(size)
        return first and size > 50 * MB

    assert smallest(never_again, 60 * MB, MB, 70 * MB, 0.02) is None


def test_what_is_found_ran_twice_after_disappointments_too() -> None:
    answers = iter([True, False, False, True, False, True, True])
    ran: list[int] = []

    def fickle(size: int) -> bool:
        answer = next(answers)
        ran.extend([size] * answer)
        return answer

    found = smallest(fickle, 64 * MB, 64 * MB, 4096 * MB, 0.02)
    assert found is not None
    assert ran.count(found.enough) == 2
