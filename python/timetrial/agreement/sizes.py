"""Sizes of tensors, in double precision and without a BLAS, whose threads would wake for them.

Of the largest tensors (AlexNet's first dense layer has 300 MB in double precision) a dozen copies fit into no
memory: whatever is computed value by value is computed in pieces.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 1 << 15  # values: what a step is judged from stays in the cache
UNIT = 2.0**-24  # half a unit in the last place of f32, relative
VANISHING = 1e-9  # of the largest gradient of a layer: of sums in double precision nothing more is left

Doubles = NDArray[np.float64]


def wide(array: NDArray[Any]) -> Doubles:
    """In double precision; no copy of what is."""
    return np.asarray(array, np.float64)


def norm(array: NDArray[Any]) -> float:
    """Euclidean."""
    return math.sqrt(sum(inner(one, one) for one in map(wide, _cut(array))))


def inner(one: Doubles, other: Doubles) -> float:
    """The sum of products, element by element."""
    return float(np.einsum("i,i->", np.ravel(one), np.ravel(other)))


def distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Euclidean, of two tensors of one shape."""
    apart = (wide(mine) - theirs for mine, theirs in zip(_cut(one), _cut(other), strict=True))
    return math.sqrt(sum(inner(piece, piece) for piece in apart))


def pieces(size: int) -> Iterator[slice]:
    """Of so many values, one piece after the other; of no value one that is empty."""
    for begin in range(0, max(1, size), PIECE):
        yield slice(begin, begin + PIECE)


def _cut(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    flat = np.ravel(array)
    yield from (flat[piece] for piece in pieces(flat.size))


def sizes_of(gradient: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """What an error of each parameter's gradient is measured by: its own size; or, where it vanishes, that of
    the largest of its layer. A bias that a normalization takes away again has a gradient of 0, of which
    doubles and f32 compute nothing but what rounding left. The two of a normalization, vectors of one length,
    are sums over the same values, either of which may cancel: always the larger."""
    sizes, layers = {name: norm(values) for name, values in gradient.items()}, defaultdict(list)
    for name in gradient:
        layers[name.rpartition(".")[0]].append(name)
    for names in layers.values():
        largest, shapes = max(sizes[name] for name in names), {gradient[name].shape for name in names}
        are_alike = len(names) > 1 and len(shapes) == 1
        for name in names:
            if are_alike or not sizes[name] > VANISHING * largest:
                sizes[name] = largest
    return sizes
