"""Subnormal numbers in what a contender carries from step to step: counted behind the last timed step.

They are the numbers below 1.2e-38 (f32), where velocities of units that died end up; a processor takes up to
a hundred cycles more for each, so a step that meets many is slow for a reason that its row should name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from timetrial.records.model import Subnormals

ROLES = ("parameter", "state", "optimizer")


def subnormals(array: NDArray[Any]) -> int:
    """How many there are in an array of floating-point numbers; 0 in one of whole numbers."""
    if not np.issubdtype(array.dtype, np.floating):
        return 0
    size = np.abs(array)
    return int(np.count_nonzero((size > 0) & (size < np.finfo(array.dtype).smallest_normal)))


class Shows(Protocol):
    """A contender that dumps its tensors."""

    def dump(self, role: str) -> Mapping[str, NDArray[Any]]:
        """Every tensor of a role."""

    def close(self) -> None:
        """Nothing more is asked."""


def count_subnormals(contact: Shows) -> list[Subnormals]:
    """Of parameters and states, one role after the other: which tensors have some."""
    found = []
    for role in ROLES:
        for name, array in contact.dump(role).items():
            if count := subnormals(array):
                found.append(Subnormals(tensor=name, count=count, size=array.size))
    contact.close()
    return found
