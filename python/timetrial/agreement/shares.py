"""How much of each of several parts is in a whole: least squares, with shares from 0 to 1."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

import numpy as np

from timetrial.agreement.sizes import Doubles, inner

SWEEPS = 100  # over the shares, one after the other: a convex bowl, whose bottom that finds

Values = Mapping[str, Doubles]  # tensors by name, as one vector
Part = TypeVar("Part", bound=Hashable)


class Shares(Generic[Part]):
    """`of`: each of the parts of a `whole`, fitted anew with each that is added."""

    def __init__(self, whole: Values):
        self.of: dict[Part, float] = {}
        self._whole = whole
        self._values: list[Values] = []

    def add(self, part: Part, values: Values) -> None:
        """`values`: not 0, with the names and shapes of the whole."""
        self._values.append(values)
        products = np.array([[along(one, other) for other in self._values] for one in self._values])
        wholes = [along(one, self._whole) for one in self._values]
        shares = np.array([*self.of.values(), 0.0])
        for _ in range(SWEEPS):
            for place, size in enumerate(np.diagonal(products)):
                others = products[place] @ shares - size * shares[place]
                shares[place] = min(1.0, max(0.0, (wholes[place] - others) / size))
        self.of = dict(zip([*self.of, part], shares.tolist(), strict=True))

    def rest(self) -> dict[str, Doubles]:
        """What is left of the whole."""
        rest = dict(self._whole)
        for share, part in zip(self.of.values(), self._values, strict=True):
            for name, values in part.items():
                rest[name] = rest[name] - share * values
        return rest


def along(one: Values, other: Values) -> float:
    """The inner product of two, over the names of the first."""
    return sum(inner(values, other[name]) for name, values in one.items())
