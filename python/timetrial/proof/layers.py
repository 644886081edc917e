"""What the layers of a contender showed, each held against what the judge makes of the values in front of it.

A layer that only chooses or moves values (a rectifier, a maximum, a mask) is what the judge makes, rounded
to f32, to the last bit. Of the others sums decide how far they may be off (agreement/sums.py), of a
normalization channel by channel. Where a layer in front did not show its values, as one that another writes
over, both are judged together: the judge goes on with its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.precision import REDUCED, Precision
from timetrial.agreement.sizes import UNIT, distance, norm
from timetrial.agreement.sums import OF_FUNCTION, energies, of_normalization, of_products, of_terms
from timetrial.proof.comparisons import comparison, named
from timetrial.proof.judge import Answer
from timetrial.questions.observed import Observation, Tensors
from timetrial.records.model import Comparison

# Kinds that choose or move values, or round once.
CHOOSING = (
    "relu", "relu6", "max_pool2d", "flatten", "dropout", "embedding", "concat", "map_to_sequence",
)  # fmt: skip
PASSING = ("relu", "relu6", "leaky_relu", "max_pool2d", "flatten", "dropout", "add", "concat")
SMALLEST = 2.0**-126  # of f32: what lies below may be 0 for whoever flushes subnormals

Layer = Mapping[str, Any]  # a node of the job


def layer_comparisons(
    seen: Observation,
    layers: Sequence[Layer],
    batch: Tensors,
    parameters: Tensors,
    answer: Answer,
    precision: Precision,
    times: float,
    known: Mapping[tuple[str, str], float],
) -> Iterator[Comparison]:
    """Of every layer at the first look; behind that of the one that fails first, in the network's order, or
    of the one that is nearest to that. `batch`: of the samples that are shown, each of which comes so many
    `times`. `known`: by how much each may differ besides."""
    assert seen.shown is not None
    limits = _Limits(layers, batch, parameters, seen.shown, answer.activation, times, known)
    worst, share = None, -1.0
    for layer in layers:
        name = layer["name"]
        if name not in seen.shown or name not in answer.activation:
            continue
        found = limits.compare(named(seen, f"activation {name}"), layer, precision)
        if not found.passed or not seen.name:
            yield found
        if not found.passed:
            return
        one = (found.error or 0.0) / (found.tolerance or 1.0)
        if one > share:
            worst, share = found, one
    if worst is not None and seen.name:
        yield worst


class _Limits:
    """`made`: by the judge, of what was in front of each layer."""

    def __init__(
        self,
        layers: Sequence[Layer],
        batch: Tensors,
        parameters: Tensors,
        shown: Tensors,
        made: Tensors,
        times: float,
        besides: Mapping[tuple[str, str], float],
    ):
        self._layers = {layer["name"]: layer for layer in layers}
        self._parameters = parameters
        self._batch, self._shown, self._made = batch, shown, made
        self._times, self._besides = times, besides
        self._known: dict[str, float] = {}

    def compare(self, words: str, layer: Layer, precision: Precision) -> Comparison:
        """What a layer showed."""
        name = layer["name"]
        mine, made = self._shown[name], self._made[name]
        size = norm(made) or 1.0
        if precision is REDUCED:
            return comparison(words, "relative_l2", distance(mine, made) / size, precision.value)
        if self._is_exact(layer):
            error = _last_bits(mine, made) / size
            return comparison(words, "relative_l2", error, 0.0)
        if layer["kind"] == "batch_norm" and not self._is_hidden(layer["inputs"][0]):
            return self._by_channel(words, layer)
        limit = (
            self._of(layer) + SMALLEST * math.sqrt(made.size) + self._besides.get(("activation", name), 0.0)
        )
        return comparison(words, "relative_l2", distance(mine, made) / size, limit / size)

    def _by_channel(self, words: str, layer: Layer) -> Comparison:
        """What a normalization showed: the channel that is nearest to its limit says what all may be off
        by."""
        mine, made = (group[layer["name"]] for group in (self._shown, self._made))
        limits = self._of_channels(layer) + SMALLEST * math.sqrt(made.size)
        errors = np.sqrt(sum(energies(one - other, 0) for one, other in zip(mine, made, strict=True)))
        share, size = float(np.max(errors / limits)), norm(made) or 1.0
        allowed = norm(errors) / share if share > 0 else norm(limits)
        return comparison(words, "relative_l2", norm(errors) / size, allowed / size)

    def _of_channels(self, layer: Layer) -> NDArray[np.float64]:
        weight, bias = self._weights(layer)
        assert bias is not None
        epsilon = layer["attributes"]["epsilon"]
        return of_normalization(self._input(layer), weight, bias, epsilon, self._times)

    def _is_exact(self, layer: Layer) -> bool:
        return layer["kind"] in CHOOSING and not any(self._is_hidden(one) for one in layer["inputs"])

    def _is_hidden(self, name: str) -> bool:
        return name not in self._shown and name not in self._batch

    def _input(self, layer: Layer) -> NDArray[Any]:
        return self._value(layer["inputs"][0])

    def _value(self, name: str) -> NDArray[Any]:
        return next(group[name] for group in (self._shown, self._batch, self._made) if name in group)

    def _of(self, layer: Layer) -> float:
        """Absolute, Euclidean. With what the layers in front may be off by that nobody sees."""
        name = layer["name"]
        if name not in self._known:
            hidden = [one for one in layer["inputs"] if self._is_hidden(one)]
            own = self._own(layer)
            if hidden and layer["kind"] not in PASSING:
                own = max(own, 2 * REST * norm(self._made[name]))
            elif hidden:
                own += math.sqrt(sum(self._of(self._layers[one]) ** 2 for one in hidden))
            self._known[name] = own
        return self._known[name]

    def _own(self, layer: Layer) -> float:
        kind, made = layer["kind"], self._made[layer["name"]]
        a = layer.get("attributes", {})
        if kind in ("dense", "conv2d"):
            weight, bias = self._weights(layer)
            spacing = a["stride_h"] * a["stride_w"] if kind == "conv2d" else 1
            size = of_products(self._input(layer), weight, bias, spacing)
            return of_terms(math.prod(weight.shape[1:])) * max(size, norm(made))
        if kind == "batch_norm":
            return norm(self._of_channels(layer))
        if kind in ("avg_pool2d", "global_avg_pool2d"):
            x = self._input(layer)
            spacing = x.size / made.size
            count = a["kernel_h"] * a["kernel_w"] if kind == "avg_pool2d" else spacing
            return of_terms(count) * max(norm(x) / math.sqrt(spacing), norm(made))
        if kind in ("tanh", "sigmoid"):
            return OF_FUNCTION * UNIT * norm(made)
        if kind == "add":
            terms = math.sqrt(sum(norm(self._value(one)) ** 2 for one in layer["inputs"]))
            return UNIT * len(layer["inputs"]) * terms
        if kind in CHOOSING or kind == "leaky_relu":
            return 4 * UNIT * norm(made)
        return REST * norm(made)

    def _weights(self, layer: Layer) -> tuple[NDArray[Any], NDArray[Any] | None]:
        names = [one["name"] for one in layer["parameters"] if one["role"] == "parameter"]
        return self._parameters[names[0]], self._parameters[names[1]] if len(names) > 1 else None


REST = 2e-5  # of a layer along time, a kind of one's own, a power: of what it makes


def _last_bits(mine: NDArray[Any], made: NDArray[Any]) -> float:
    """The distance to what is made, rounded to f32; 0 where that differs in no bit, or, of who shows doubles,
    where what is made does not."""
    if mine.shape != made.shape:
        return math.nan
    rounded = np.asarray(made, np.float32)
    if np.array_equal(mine, rounded) or np.array_equal(mine, made):
        return 0.0
    apart = np.abs(np.asarray(mine, np.float64) - rounded)
    apart[apart <= SMALLEST] = 0.0
    return norm(apart)
