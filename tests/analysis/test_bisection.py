"""The search for a boundary, downward (the smallest size) and upward (the largest batch): what it finds does,
and the next one does not."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from timetrial.statistics.bisection import Bracket, boundary

MB, PAGE = 1 << 20, 4096


def smallest(
    does: Callable[[int], bool], guess: int, precision: float, least: int = MB, most: int = 4096 * MB
) -> Bracket:
    guess -= guess % PAGE
    return boundary(does, guess, easiest=most, hardest=least, precision=precision, stride=0.5, grain=PAGE)


def largest(does: Callable[[int], bool], guess: int, most: int) -> Bracket:
    return boundary(does, guess, easiest=1, hardest=most, precision=0.0)


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
    found = smallest(needs, guess, precision)
    assert found.does is not None
    assert found.fails is not None
    assert found.fails < needs.size <= found.does
    assert found.does <= found.fails * (1 + precision) + PAGE
    assert needs.asked[-1] == found.does  # confirmed
    assert len(needs.asked) < 20


def test_a_good_guess_is_quick() -> None:
    needs = Needs(100 * MB)
    smallest(needs, 97 * MB, 0.02)
    assert len(needs.asked) <= 9


def test_twice_the_same_within_three_percent() -> None:
    for seed in range(50):
        found = [smallest(Needs(100 * MB, 0.005, 2 * seed + turn), 80 * MB, 0.02) for turn in (0, 1)]
        first, second = (one.does for one in found if one.does)
        assert abs(first / second - 1) < 0.03


def test_the_least_may_be_enough() -> None:
    assert smallest(Needs(1), 50 * MB, 0.02) == Bracket(MB, None)


def test_the_most_may_be_too_little() -> None:
    assert smallest(Needs(5000 * MB), 50 * MB, 0.02) == Bracket(None, 4096 * MB)


def test_what_was_enough_by_luck_is_not_believed() -> None:
    tries = {"of 64": 0}

    def lucky(size: int) -> bool:
        """Of 64 MB it says yes once."""
        if size == 64 * MB:
            tries["of 64"] += 1
            return tries["of 64"] == 1
        return size > 64 * MB

    found = smallest(lucky, 64 * MB, 0.1, least=60 * MB)
    assert found.does is not None
    assert found.does > 64 * MB


def test_who_never_runs_twice_has_no_size() -> None:
    seen: set[int] = set()

    def never_again(size: int) -> bool:
        first = size not in seen
        seen.add(size)
        return first and size > 50 * MB

    assert smallest(never_again, 60 * MB, 0.02, most=70 * MB).does is None


def test_what_is_found_ran_twice_after_disappointments_too() -> None:
    answers = itertools.chain([True, False, False, True, False], itertools.repeat(True))
    ran: list[int] = []

    def fickle(size: int) -> bool:
        answer = next(answers)
        ran.extend([size] * answer)
        return answer

    found = smallest(fickle, 64 * MB, 0.02, least=64 * MB)
    assert found.does is not None
    assert ran.count(found.does) == 2


@pytest.mark.parametrize("guess", [1, 7, 99, 100, 101, 500, 1000])
@pytest.mark.parametrize("true", [0, 1, 2, 100, 999, 1000])
def test_the_search_finds_it_from_anywhere(guess: int, true: int) -> None:
    tries: list[int] = []

    def does_fit(size: int) -> bool:
        assert 1 <= size <= 1000
        tries.append(size)
        return size <= true

    found = largest(does_fit, guess, 1000)
    assert found == Bracket(true or None, None if true == 1000 else true + 1)
    assert len(tries) <= 30


def test_what_fits_once_but_not_again_is_not_the_answer() -> None:
    lucky = iter([True, False, False])  # 50 fits, 51 does not, 50 does not when it is tried again
    found = largest(lambda size: next(lucky, size <= 48), 50, 1000)
    assert found == Bracket(48, 49)


def test_who_never_fits_twice_has_no_answer() -> None:
    tries: dict[int, int] = {}

    def does_fit(size: int) -> bool:
        tries[size] = tries.get(size, 0) + 1
        return tries[size] == 1

    assert largest(does_fit, 50, 50).does is None
