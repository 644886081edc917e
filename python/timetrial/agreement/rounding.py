"""What last places make of a network that magnifies them.

A normalization takes away the mean of a gradient and what lies along its own values, which of few samples,
or of values that hardly differ, is nearly all of it; a network along time goes on from its own last state
for many steps, which nobody sees; and a sum of samples may cancel. The judge is asked again with parameters
and with what was shown off by a small part of their last places, in both directions of four draws, and what
comes of that, times as much, is believed in the direction in which it moves less. And it is asked with
gradients between layers off as rounding throws them (`reference`, disturb.h). A contender may differ by four
times the largest of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from timetrial.agreement.sizes import UNIT, distance

PLACES = 16 * UNIT  # of each value: what sums of some hundred terms are off by in f32
FINER = 2.0**-16  # by so much less the judge is shifted
PAIRS = 4
DRAWS = 4  # of disturbed gradients
TIMES = 4.0  # of a normal distribution: of 16 000 tensors of a single value one is further off

Arrays = dict[str, np.ndarray[Any, Any]]
Doubts = Mapping[tuple[str, str], float]


def shifted(parameters: Arrays) -> Iterator[Arrays]:
    """The same but for a small part of last places, in pairs of opposite directions."""
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        noise = {name: FINER * PLACES * rng.uniform(-1, 1, np.shape(one)) for name, one in parameters.items()}
        for sign in (1, -1):
            yield {name: one * (1 + sign * noise[name]) for name, one in parameters.items()}


def of_shifts(
    answered: Any, parameters: Arrays, ask: Callable[[Arrays], Any]
) -> dict[tuple[str, str], float]:
    """By how much a contender may differ from what a judge answered at these parameters, absolute, in the
    Euclidean norm: of ("loss", "") and of each tensor by kind and name. `ask` answers at other ones."""
    away: dict[tuple[str, str], list[float]] = defaultdict(list)
    for other in shifted(parameters):
        for key, apart in _distances(ask(other), answered):
            away[key].append(apart / FINER)
    return {key: TIMES * _smaller(values) for key, values in away.items()}


def of_disturbances(answered: Any, ask: Callable[[int], Any], at_once: int) -> Doubts:
    """The same by disturbed gradients. `ask` answers with a draw of these, so many `at_once`."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    with ThreadPoolExecutor(at_once) as pool:
        for other in pool.map(ask, range(1, DRAWS + 1)):
            for key, apart in _distances(other, answered):
                found[key] = max(found[key], TIMES * apart)
    return found


def largest(one: Doubts, other: Doubts) -> Doubts:
    """The larger of both, of each tensor."""
    return {key: max(one.get(key, 0.0), other.get(key, 0.0)) for key in one.keys() | other.keys()}


def _distances(other: Any, answered: Any) -> Iterator[tuple[tuple[str, str], float]]:
    yield ("loss", ""), abs(other.loss - answered.loss)
    for kind in ("gradient", "activation", "state"):
        theirs = getattr(other, kind)
        for name, values in getattr(answered, kind).items():
            yield (kind, name), distance(theirs[name], values)


def _smaller(distances: list[float]) -> float:
    return max(min(distances[pair : pair + 2]) for pair in range(0, len(distances), 2))
