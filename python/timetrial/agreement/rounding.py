"""What rounding makes of a network whose images depend on each other (batch normalization).

A small variance magnifies every last place, in all images; no decision explains that (proof/coupled.py). So
the judge is asked again with its parameters off by some last places, in both directions, and a contender may
differ from it by twice what that makes of the judge's own numbers in this very step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLACES = 16 * 2.0**-24  # of each value: what sums of some hundred terms are off by in f32
PAIRS = 2
TIMES = 2.0
WORDS = "within what rounding makes of the judge's own numbers"

Arrays = dict[str, NDArray[Any]]


@dataclass
class Doubt:
    """Of a step, absolute: of the loss, and of each tensor by kind and name, in the Euclidean norm."""

    loss: float = 0.0
    of: dict[tuple[str, str], float] = field(default_factory=dict)

    def allowed(self, kind: str, name: str) -> float:
        """By how much a contender's tensor may differ."""
        return TIMES * self.of.get((kind, name), 0.0)


def shifted(parameters: Arrays) -> Iterator[Arrays]:
    """The same but for last places, in pairs of opposite directions."""
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        noise = {name: PLACES * rng.uniform(-1, 1, np.shape(one)) for name, one in parameters.items()}
        for sign in (1, -1):
            yield {name: one * (1 + sign * noise[name]) for name, one in parameters.items()}


def doubt_of(answered: Any, parameters: Arrays, ask: Callable[[Arrays], Any]) -> Doubt:
    """How far the answers that `ask` gets lie from the one that a judge gave at these parameters."""
    found = Doubt()
    for other in shifted(parameters):
        again = ask(other)
        found.loss = max(found.loss, abs(again.loss - answered.loss))
        for kind in ("gradient", "activation", "state"):
            theirs = getattr(again, kind)
            for name, values in getattr(answered, kind).items():
                away = np.ravel(np.asarray(theirs[name], np.float64) - values)
                distance = math.sqrt(float(np.einsum("i,i->", away, away)))  # without a BLAS, as elsewhere
                found.of[kind, name] = max(found.of.get((kind, name), 0.0), distance)
    return found
