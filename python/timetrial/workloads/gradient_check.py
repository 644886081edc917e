"""Whether the derivative that a user wrote of a layer kind is that of what the kind computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.core import Layer, LayerDefinition, Network, own_kinds
from timetrial.core.network import Node
from timetrial.errors import InputError

BATCH = 2
DIRECTIONS = 3  # at random, of each tensor: a wrong derivative is right along none of them
STEP = 1e-6
TOLERANCE = 1e-4

Doubles = NDArray[np.float64]
_CHECKED: set[str] = set()


def check_gradients(network: Network) -> None:
    """Of every layer whose kind a user registered, on random values: along a direction, the difference of
    `forward` must be what `backward` says. InputError names kind, layer, tensor and both numbers."""
    if not network.has_own_kinds:
        return
    small = network.resized(BATCH)
    nodes = {node["name"]: node for node in small.nodes}
    for node in small.nodes:
        if "definition" not in node:
            continue
        inputs = [nodes[name] for name in node["inputs"]]
        key = repr((node["definition"], node["attributes"], [one["shape"] for one in inputs]))
        if key in _CHECKED:
            continue
        _Check(own_kinds()[node["kind"]], node, inputs).run()
        _CHECKED.add(key)


class _Check:
    def __init__(self, definition: LayerDefinition, node: Node, inputs: Sequence[Node]):
        self._definition = definition
        self._node = node
        flags = [one.name for one in definition.attributes if one.type == "flag"]
        attributes = {k: bool(v) if k in flags else v for k, v in node["attributes"].items()}
        shapes = [tuple(one["shape"]) for one in inputs]
        self._rng = np.random.default_rng(1)
        self._trained = [one for one in node["parameters"] if one["role"] == "parameter"]
        states = [one for one in node["parameters"] if one["role"] == "state"]
        self._layer = Layer(
            node["name"],
            attributes,
            shapes,
            tuple(node["shape"]),
            training=True,
            states=[self._rng.uniform(0.5, 1.5, one["shape"]) for one in states],
        )
        self._inputs = [self._input(one) for one in inputs]
        # Without a gradient: whole numbers, and masks.
        self._given = {n["name"] for n in inputs if n.get("dtype") == "i64" or n.get("role") == "mask"}
        self._parameters = [self._rng.normal(0, 0.5, one["shape"]) for one in self._trained]

    def run(self) -> None:
        self._check_states()
        output = self._forward()
        if output.shape != tuple(self._node["shape"]):
            raise self._wrong(f"forward gave shape {output.shape}; expected {tuple(self._node['shape'])}")
        weight = self._rng.normal(size=output.shape)
        of_inputs, of_parameters = self._backward(output, weight)
        for name, value, gradient in (
            *zip(self._node["inputs"], self._inputs, of_inputs, strict=True),
            *zip(
                [one["name"] for one in self._trained],
                self._parameters,
                of_parameters,
                strict=True,
            ),
        ):
            if name not in self._given:
                self._compare(name, value, np.asarray(gradient, np.float64), weight)

    def _check_states(self) -> None:
        if not self._layer.states:
            return
        try:
            given = self._definition.next_states(self._layer, self._inputs, self._parameters)
            shapes = [np.shape(one) for one in given]
        except Exception as error:
            raise self._wrong(f"next_states failed: {type(error).__name__}: {error}") from error
        expected = [np.shape(one) for one in self._layer.states]
        if shapes != expected:
            raise self._wrong(f"next_states gave shapes {shapes}; expected {expected}")

    def _compare(self, name: str, value: Doubles, gradient: Doubles, weight: Doubles) -> None:
        if gradient.shape != value.shape:
            raise self._wrong(
                f"backward gave '{name}' a gradient of shape {gradient.shape}; expected {value.shape}"
            )
        typical = float(np.linalg.norm(gradient)) / math.sqrt(max(1, gradient.size))
        kept = value.copy()
        for _ in range(DIRECTIONS):
            direction = self._rng.normal(size=value.shape)
            ends = []
            for sign in (1, -1):
                value[...] = kept + sign * STEP * direction
                ends.append(float(np.sum(weight * self._forward())))
            value[...] = kept
            moved = (ends[0] - ends[1]) / (2 * STEP)
            said = float(np.sum(gradient * direction))
            size = max(abs(moved), abs(said), typical * float(np.linalg.norm(direction)))
            if not abs(moved - said) <= TOLERANCE * size:
                raise self._wrong(
                    f"backward is not the derivative of forward: along a direction of '{name}' the output "
                    f"changes by {moved:.6g}, backward says {said:.6g}"
                )

    def _input(self, one: Node) -> Doubles:
        if one.get("dtype") == "i64":
            below = max(1, self._node["integers_below"])
            return self._rng.integers(0, below, one["shape"]).astype(np.float64)
        return self._rng.normal(size=one["shape"])

    def _forward(self) -> Doubles:
        try:
            return np.asarray(
                self._definition.forward(self._layer, self._inputs, self._parameters), np.float64
            )
        except Exception as error:
            raise self._wrong(f"forward failed: {type(error).__name__}: {error}") from error

    def _backward(self, output: Doubles, gradient: Doubles) -> tuple[Sequence[Any], Sequence[Any]]:
        try:
            given = self._definition.backward(self._layer, self._inputs, self._parameters, output, gradient)
            of_inputs, of_parameters = given
        except Exception as error:
            raise self._wrong(f"backward failed: {type(error).__name__}: {error}") from error
        for what, found, count in (
            ("inputs", of_inputs, len(self._inputs)),
            ("parameters", of_parameters, len(self._parameters)),
        ):
            if len(found) != count:
                raise self._wrong(f"backward gave {len(found)} gradients of {what}; expected {count}")
        return of_inputs, of_parameters

    def _wrong(self, words: str) -> InputError:
        return InputError(
            f"The layer kind '{self._definition.kind}' (layer '{self._node['name']}'): {words}."
        )
