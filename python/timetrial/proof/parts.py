"""Judging a large network on part of a batch.

A contender takes its steps in full batches. Where a judge would need seconds for each of them, the proof's
batches hold fewer different images: each of them equally often, in an order of chance. The mean loss over
such a batch, and with it every gradient, is that over its different images, so the judge computes these only.
Whoever leaves out a part of the batch has another mean: in an order of chance no part holds each image
equally often.

A normalization over the batch looks at means over it, too, and the biased variance is one: they are those of
the different images. So its batches are made of few images as well, and sooner, because what rounding decides
is found with the whole part and not image by image (coupled.py). Kinds of the user's own may look at a batch
in other ways, and of carried states each sample has its own: all of it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from timetrial.core import Network
from timetrial.questions.observed import Tensors, rows_of, sample_count

if TYPE_CHECKING:
    from timetrial.proof.judge import Answer, Judge, Ties, Witness

# Multiply-accumulates of a gradient step; `cblas` in double precision does 5e9 to 1e10 a second on two cores,
# and a proof asks for about twenty.
PART_LIMIT = 5_000_000_000
COUPLED_LIMIT = 1_000_000_000
FEWEST = 4  # different images in a batch: with fewer, whole layers may be off


def part_of(network: Network) -> int:
    """How many different images a batch of the proof has: all, or a divisor of the batch size."""
    batch = network.batch_size
    if network.carries_state or (network.couples_batch and network.has_own_kinds):
        return batch
    limit = COUPLED_LIMIT if network.couples_batch else PART_LIMIT
    most = limit * batch // max(1, network.multiply_accumulates("gradient"))
    if batch <= most:
        return batch
    divisors = [count for count in range(FEWEST, batch) if batch % count == 0]
    fitting = [count for count in divisors if count <= most]
    return max(fitting) if fitting else min(divisors, default=batch)


def repeated(order: NDArray[np.int64], part: int) -> NDArray[np.int64]:
    """Of each row of an order the first `part` images, equally often, in an order of chance in which no
    beginning of the batch, and so no end, holds each equally often."""
    if part == order.shape[1]:
        return order
    rng = np.random.default_rng(part)
    return np.stack([row[_places(rng, part, order.shape[1])] for row in order])


def _places(rng: np.random.Generator, part: int, batch: int) -> NDArray[np.int64]:
    while True:
        places = rng.permutation(np.tile(np.arange(part), batch // part))
        seen = np.cumsum(places[:-1, None] == np.arange(part), axis=0)
        if np.all(seen.min(axis=1) != seen.max(axis=1)):
            return places


class Spread(Mapping[str, NDArray[Any]]):
    """Values of different images as a batch has them, one tensor at a time: all together may be gigabytes."""

    def __init__(self, values: Mapping[str, NDArray[Any]], place: NDArray[Any]):
        self._values = values
        self._place = place

    def __getitem__(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = self._values[name][self._place]
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class PartJudge:
    """A judge of batches of `part` images, asked about larger ones. `whole`: who judges a batch of all
    different images where those depend on each other."""

    def __init__(self, judge: Judge, part: int, whole: Callable[[], Judge] | None = None):
        self.name = judge.name
        self._whole = whole
        self._judge = judge
        self._part = part

    def gradient(self, parameters: Tensors, batch: Tensors, *, activations: bool = False) -> Answer:
        """Loss and gradients at these parameters: of the different images where they come equally often,
        otherwise of one part of the batch after the other."""
        first, place = different(batch)
        if len(first) == self._part and len(set(np.bincount(place))) == 1:
            answer = self._judge.gradient(parameters, rows_of(batch, first), activations=activations)
            return replace(answer, activation=Spread(answer.activation, place))
        if self._whole is not None:
            return self._whole().gradient(parameters, batch, activations=activations)
        parts = self._parts(sample_count(batch))
        answers = (
            self._judge.gradient(parameters, rows_of(batch, part), activations=activations) for part in parts
        )
        total = next(answers)
        losses, shown = [total.loss], [total.activation]
        for one in answers:  # never all of them: a gradient of AlexNet has half a gigabyte
            for name, values in total.gradient.items():
                values += one.gradient[name]
            losses.append(one.loss)
            shown.append(one.activation)
        return replace(
            total,
            loss=float(np.mean(losses)),
            gradient={
                name: np.divide(values, len(parts), out=values) for name, values in total.gradient.items()
            },
            activation={name: np.concatenate([one[name] for one in shown]) for name in total.activation},
        )

    def output(self, parameters: Tensors, batch: Tensors) -> NDArray[Any]:
        """The prediction (N x classes)."""
        return np.concatenate(
            [
                self._judge.output(parameters, rows_of(batch, part))
                for part in self._parts(sample_count(batch))
            ]
        )

    def witness(self, ties: Ties = "first", images: int = 1) -> Witness:
        """One who looks at so many images of the same network, and takes `ties` this way."""
        return self._judge.witness(ties, images)

    def _parts(self, count: int) -> list[slice]:
        return [slice(begin, begin + self._part) for begin in range(0, count, self._part)]


def different(batch: Tensors) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each different sample (image with label) comes first; and which of them each place has."""
    keys = [tuple(one[n].tobytes() for one in batch.values()) for n in range(sample_count(batch))]
    known: dict[tuple[bytes, ...], int] = {}
    place = np.array([known.setdefault(key, len(known)) for key in keys])
    return np.unique(place, return_index=True)[1], place


def evenly(batch: Tensors, *, whole: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same where each comes equally often: those alone are the batch. Otherwise all samples, as they are;
    so where the `whole` is asked for, since alike ones have states of their own."""
    first, place = different(batch)
    if not whole and len(set(np.bincount(place).tolist())) == 1:
        return first, place
    return np.arange(len(place)), np.arange(len(place))
