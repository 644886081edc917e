"""Networks of which width and depth can be chosen: `width=256 depth=3`, or by one name, `mlp@256x3`."""

from __future__ import annotations

import re
from collections.abc import Callable

from timetrial.errors import InputError
from timetrial.networks.definition import NetworkDefinition
from timetrial.networks.mlp import DEPTH, WIDTH, mlp

# name -> (what makes it of a width and a depth, what these are unless told otherwise)
SIZED: dict[str, tuple[Callable[[int, int], NetworkDefinition], tuple[int, int]]] = {
    "mlp": (mlp, (WIDTH, DEPTH)),
}
MOST_WIDTH, MOST_DEPTH = 65_536, 1_000
_NAME = re.compile(r"(.+)@(\d*)x(\d*)")


def sized_network(source: str) -> NetworkDefinition | None:
    """Of such a name, in which a number that is left out is the network's own; None: it is no such name.
    InputError: the network has no sizes to choose, or not these."""
    match = _NAME.fullmatch(source)
    if match is None:
        return None
    name = match[1]
    if name not in SIZED:
        raise InputError(
            f"'{source}': the width and the depth of '{name}' are what they are. Those of {', '.join(SIZED)} "
            "can be chosen; a network of your own can come from a function of yours, one for each size."
        )
    make, (width, depth) = SIZED[name]
    return make(_size("width", match[2], width, MOST_WIDTH), _size("depth", match[3], depth, MOST_DEPTH))


def _size(key: str, word: str, own: int, most: int) -> int:
    size = int(word) if word else own
    if not 1 <= size <= most:
        raise InputError(f"{key} is {size}; expected a whole number from 1 to {most:,}.")
    return size
