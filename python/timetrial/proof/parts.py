"""Judging a large network on part of a batch.

A contender takes its steps in full batches. Where a judge would need seconds for each of them, the proof's
batches hold fewer different images: each of them equally often, in an order of chance. The mean loss over
such a batch, and with it every gradient, is that over its different images, so the judge computes these only,
and of these alone a contender shows its activations.
Whoever leaves out a part of the batch has another mean: in an order of chance no part holds each image
equally often.

A normalization over the batch looks at means over it, too, and the biased variance is one: they are those of
the different images. So its batches are made of few images as well. Kinds of the user's own may look at a
batch in other ways, and of carried states each sample has its own: all of it is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from timetrial.core import Network
from timetrial.questions.observed import Tensors, rows_of, sample_count

if TYPE_CHECKING:
    from timetrial.proof.judge import Answer, Judge, Ties

# Multiply-accumulates of a gradient step; `cblas` in double precision does 5e9 to 1e10 a second on two cores,
# and a proof asks for about twenty.
PART_LIMIT = 5_000_000_000
COUPLED_LIMIT = 1_000_000_000
FEWEST = 4  # different images in a batch: with fewer, whole layers may be off


def part_of(network: Network) -> int:
    """How many different images a batch of the proof has: all, or a divisor of the batch size."""
    batch = network.batch_size
    if _needs_whole(network):
        return batch
    limit = COUPLED_LIMIT if network.couples_batch else PART_LIMIT
    of_all = max(1, network.multiply_accumulates("gradient"))
    return _divisor(batch, limit * batch // of_all)


def is_huge(network: Network) -> bool:
    """Whether a single image takes longer than all of a part may."""
    return network.multiply_accumulates("gradient") > PART_LIMIT * network.batch_size


def part_of_recipe(network: Network, most: int) -> int:
    """The same of the proof's own recipe, where `reference` judges `most` images: as many as it does, if
    there is such a part."""
    part = part_of(network)
    if _needs_whole(network):
        return part
    smaller = _divisor(network.batch_size, most)
    return smaller if smaller <= min(most, part) else part


def _needs_whole(network: Network) -> bool:
    return network.carries_state or (network.couples_batch and network.has_own_kinds)


def _divisor(batch: int, most: int) -> int:
    """The batch, or its largest divisor of at most so many images, or, of all, the smallest that will do."""
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


class PartJudge:
    """A judge of batches of `part` images, asked about larger ones. `whole`: who judges a batch of all
    different images where those depend on each other."""

    def __init__(self, judge: Judge, part: int, whole: Callable[[], Judge] | None = None):
        self.name, self.network, self.is_large = judge.name, judge.network, judge.is_large
        self._whole = whole
        self._judge = judge
        self._part = part

    def gradient(self, parameters: Tensors, batch: Tensors, shown: Tensors | None = None) -> Answer:
        """Loss and gradients at these parameters: of the different images where they come equally often, of
        which alone something is shown; otherwise of one part of the batch after the other."""
        first = np.arange(self._part) if sample_count(batch) == self._part else samples(batch, self._part)
        if first is not None:
            return self._judge.gradient(parameters, rows_of(batch, first), shown)
        if self._whole is not None:
            return self._whole().gradient(parameters, batch, shown)
        parts = self._parts(sample_count(batch))
        answers = (
            self._judge.gradient(parameters, rows_of(batch, part), shown and rows_of(shown, part))
            for part in parts
        )
        total = next(answers)
        losses, made = [total.loss], [total.activation]
        for one in answers:  # never all of them: a gradient of AlexNet has half a gigabyte
            for name, values in total.gradient.items():
                values += one.gradient[name]
            losses.append(one.loss)
            made.append(one.activation)
        return replace(
            total,
            loss=float(np.mean(losses)),
            gradient={
                name: np.divide(values, len(parts), out=values) for name, values in total.gradient.items()
            },
            activation={name: np.concatenate([one[name] for one in made]) for name in total.activation},
        )

    def output(self, parameters: Tensors, batch: Tensors) -> NDArray[Any]:
        """The prediction (N x classes)."""
        return np.concatenate(
            [
                self._judge.output(parameters, rows_of(batch, part))
                for part in self._parts(sample_count(batch))
            ]
        )

    def sized(self, images: int, ties: Ties = "first", rounding: int = 0) -> Judge:
        """As Judge has it."""
        return self._judge.sized(images, ties, rounding)

    def _parts(self, count: int) -> list[slice]:
        return [slice(begin, begin + self._part) for begin in range(0, count, self._part)]


def different(batch: Tensors) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each different sample (image with label) comes first; and which of them each place has."""
    keys = [tuple(one[n].tobytes() for one in batch.values()) for n in range(sample_count(batch))]
    known: dict[tuple[bytes, ...], int] = {}
    place = np.array([known.setdefault(key, len(known)) for key in keys])
    return np.unique(place, return_index=True)[1], place


def samples(batch: Tensors, part: int) -> NDArray[np.int64] | None:
    """Places in a batch of so many different samples, each of which comes equally often: a mean over these is
    that over the batch. None: it is not such a batch."""
    first, place = different(batch)
    is_even = len(set(np.bincount(place).tolist())) == 1
    return first if is_even and len(first) == part < len(place) else None
