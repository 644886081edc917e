"""Decisions that rounding turned, where the samples of a batch depend on each other.

Behind a normalization over the batch no image can be computed alone: a decision that turned in one image
changes the gradients of all. It still changes no value, being within rounding of its edge, so that what
several of them make of the gradients adds up (flips.py); and it changes nothing of the layers behind it. So
they are looked for from the loss backward: what a layer's gradient is off by was turned right behind it, in
the channels whose bias is off, or farther on, and that is known by then. The few that are left are tried,
each with the whole batch; the one that brings the judge nearest stays, as long as one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from timetrial.proof.flips import NEARER, Edge, edges_of
from timetrial.proof.observed import Tensors, rows_of, sample_count
from timetrial.proof.parts import different
from timetrial.proof.rule import inner, norm, size_of

if TYPE_CHECKING:
    from timetrial.proof.judge import Judge, Ties

MOST_TRIED = 24  # of one batch, each a gradient step of the judge's in plain loops
OFF_CHANNEL = 0.05  # of the channel whose bias is off most


def explain_coupled(
    judge: Judge,
    parameters: Tensors,
    batch: Tensors,
    residual: Tensors,
    gradient: Tensors,
    tolerance: float,
    ties: Ties = "first",
) -> tuple[Tensors, list[str]]:
    """The judge's gradient with those decisions turned that a contender's `residual` (its gradient minus the
    judge's) asks for, and the words of each. Whether that explains it, the ordinary comparison says."""
    first, place = different(batch)
    counts = np.bincount(place)
    if counts.min() != counts.max():  # then the different ones alone are another batch
        first, counts = np.arange(sample_count(batch)), np.ones(sample_count(batch), np.int64)
    search = _Search(judge, parameters, rows_of(batch, first), int(counts[0]), ties)
    rest = {name: np.asarray(values, np.float64) for name, values in residual.items()}
    corrected, words = dict(gradient), []
    for node in reversed(search.owners_in_order):
        names = [name for name in rest if name.rpartition(".")[0] == node]
        while any(norm(rest[one]) > tolerance * (size_of(corrected, one) or 1.0) for one in names):
            found = search.best(node, {name: rest[name] for name in names}, corrected)
            if found is None:
                break
            edge, share, difference = found
            words.append(search.words_of(edge, first))
            for name, values in difference.items():
                corrected[name] = corrected[name] + share * values
                if name in rest:
                    rest[name] = rest[name] - share * values
    return corrected, words


@dataclass
class _Search:
    """`images`: all different, each `times` in the batch."""

    judge: Judge
    parameters: Tensors
    images: Tensors
    times: int
    ties: Ties

    def __post_init__(self) -> None:
        self._witness = self.judge.witness(self.ties, images=sample_count(self.images))
        self._witness.load(self.parameters)
        plain = self._witness.gradient(self.images, {})
        self._plain = plain.gradient
        self._nodes = {node["name"]: node for node in self._witness.nodes}
        self._owners = _owners(self._witness.nodes)
        self._left = list(edges_of(self._witness.nodes, plain.activation, ties=self.ties))
        self._left.sort(key=lambda edge: edge.margin)
        self._tried = 0

    @property
    def owners_in_order(self) -> list[str]:
        """Layers with parameters."""
        return [name for name, node in self._nodes.items() if _is_trained(node)]

    def best(self, owner: str, rest: Tensors, gradient: Tensors) -> tuple[Edge, float, Tensors] | None:
        """The decision right behind a layer that brings its gradients nearest to the contender's: with how
        much of it turned, and what that makes of all gradients. None: none does."""
        scale = {name: size_of(gradient, name) or 1.0 for name in rest}

        def product(mine: Tensors, theirs: Tensors) -> float:
            return sum(inner(mine[name], theirs[name]) / scale[name] ** 2 for name in rest)

        nearest, found = (1 - NEARER**2) * product(rest, rest), None
        for edge in self._candidates(owner, rest):
            if self._tried == MOST_TRIED:
                break
            self._tried += 1
            difference = self._difference(edge)
            along, size = product(rest, difference), product(difference, difference)
            for count in range(1, self.times + 1):  # an image need not turn everywhere where it comes again
                share = count / self.times
                gain = share * (2 * along - share * size)
                if gain > nearest:
                    nearest, found = gain, (edge, share, difference)
        if found is not None:
            self._left.remove(found[0])
        return found

    def words_of(self, edge: Edge, numbers: NDArray[Any]) -> str:
        """As a record has them."""
        shape = self._nodes[edge.source]["shape"]
        image = numbers[edge.place // math.prod(shape[1:])]
        return f"{edge.node} unit {edge.unit} of the batch (image {image}), margin {edge.margin:.1g}"

    def _candidates(self, owner: str, rest: Tensors) -> Iterator[Edge]:
        bias = rest.get(f"{owner}.bias")
        for edge in self._left:
            if owner not in self._owners[edge.source]:
                continue
            shape = self._nodes[edge.source]["shape"]
            if bias is not None and bias.shape == (shape[1],):
                channel = edge.place // math.prod(shape[2:]) % shape[1]
                if abs(bias[channel]) < OFF_CHANNEL * float(np.max(np.abs(bias))):
                    continue
            yield edge

    def _difference(self, edge: Edge) -> Tensors:
        amounts = np.zeros(self._nodes[edge.source]["shape"])
        amounts.reshape(-1)[edge.place] = edge.nudge
        turned = self._witness.gradient(self.images, {edge.source: amounts}).gradient
        return {name: turned[name] - self._plain[name] for name in turned}


def _is_trained(node: Mapping[str, Any]) -> bool:
    return any(one["role"] == "parameter" for one in node["parameters"])


def _owners(nodes: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Of each node the nearest layers with parameters before it, itself if it has some."""
    owners: dict[str, set[str]] = {}
    for node in nodes:
        before = set().union(*(owners[name] for name in node["inputs"])) if node["inputs"] else set()
        owners[node["name"]] = {node["name"]} if _is_trained(node) else before
    return owners
