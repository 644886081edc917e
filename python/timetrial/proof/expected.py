"""What a workload says a contender must be, and whether what one showed has that form."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetrial import npy
from timetrial.agreement.update import Rule
from timetrial.core import layer_traits
from timetrial.proof.cancelling import may_cancel
from timetrial.proof.rule import lacking
from timetrial.questions.observed import Batches, Observation, Tensors
from timetrial.workloads import Prepared

LOGARITHMS = ("softmax_cross_entropy", "sequence_cross_entropy")  # losses: of a probability


@dataclass(frozen=True)
class Expected:
    """What the workload says: parameters and states of layers with their initial values, and its layers as in
    the job file, in the network's order; the optimizer as there; the batches of its streams.
    `undecayed`: parameters that its weight decay is not for. `couples_batch`: what becomes of a sample
    depends on the others of its batch. `output`: the node that the loss reads. `is_logarithm`: the loss is
    that of a probability."""

    initial: Tensors
    layers: Sequence[Mapping[str, Any]]
    optimizer: Mapping[str, Any]
    batches: Batches
    states: Tensors = field(default_factory=dict)
    undecayed: frozenset[str] = frozenset()
    couples_batch: bool = False
    output: str = ""
    is_logarithm: bool = False

    @functools.cached_property
    def cancelling(self) -> frozenset[str]:
        """Parameters whose gradients may cancel."""
        return may_cancel(self.initial, self.output)

    @functools.cached_property
    def values(self) -> Mapping[str, int]:
        """Of a parameter whose gradient comes through normalizations over the batch: how many values a
        channel of theirs has, at most."""
        behind: dict[str, int] = {}  # of a node: of those it leads to, itself among them
        found: dict[str, int] = {}
        for layer in reversed(self.layers):
            name = layer["name"]
            own = _values_of(layer) if layer["kind"] == "batch_norm" else 0
            behind[name] = max(own, behind.get(name, 0))
            for source in layer["inputs"]:
                behind[source] = max(behind.get(source, 0), behind[name])
            found.update((one["name"], behind[name]) for one in layer["parameters"] if behind[name])
        return found

    @functools.cached_property
    def statistics(self) -> Mapping[str, float]:
        """Of each running mean and variance the root of the number of values in a channel, times the part of
        it that a step takes: by so many units of the size of their terms sums move it."""
        return {
            one["name"]: layer["attributes"]["momentum"] * math.sqrt(_values_of(layer))
            for layer in self.layers
            if layer["kind"] == "batch_norm"
            for one in layer["parameters"]
            if one["role"] == "state"
        }


def normalized(layers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The nodes whose values go into a normalization over the batch, and by which nothing decides."""
    deciding: set[str] = set()
    for layer in layers:
        traits = layer_traits(layer["kind"])
        if traits.kinks or traits.picks_largest:
            deciding |= {layer["name"], *layer["inputs"]}
    into = [one for layer in layers if layer_traits(layer["kind"]).couples_batch for one in layer["inputs"]]
    return [name for name in dict.fromkeys(into) if name not in deciding]


def _values_of(layer: Mapping[str, Any]) -> int:
    """In a channel of a batch."""
    return int(math.prod(layer["shape"]) // layer["shape"][1])


def expected_of(prepared: Prepared) -> Expected:
    """What a prepared workload says."""
    nodes = prepared.job["network"]["nodes"]
    of_nodes = [one for node in nodes for one in node["parameters"]]
    kinds = {node["name"]: node["kind"] for node in nodes}

    def initial(role: str) -> Tensors:
        return {one["name"]: npy.mapped(one["file"]) for one in of_nodes if one["role"] == role}

    return Expected(
        initial=initial("parameter"),
        layers=[node for node in nodes if node["kind"] != "input" and node["shape"]],
        optimizer=prepared.job["optimizer"],
        batches=Batches(prepared.job["streams"]),
        states=initial("state"),
        undecayed=frozenset(one["name"] for one in of_nodes if not one["decays"]),
        couples_batch=prepared.network is not None and prepared.network.couples_batch,
        output=prepared.job["network"]["output"],
        is_logarithm=kinds[prepared.job["network"]["loss"]] in LOGARITHMS,
    )


def wrong_form(seen: Observation, expected: Expected, samples: int | None = None) -> tuple[str, str] | None:
    """Names and shapes, before any value. `samples`: how many of the batch are shown; None: all."""
    shapes = {name: tensor.shape for name, tensor in expected.initial.items()}
    shown = seen.shown or {}
    for layer in expected.layers if shown else ():
        values, shape = shown.get(layer["name"]), tuple(layer["shape"])
        shape = (samples or shape[0], *shape[1:])  # of some samples only, where not all are judged
        if values is not None and values.dtype not in (np.float32, np.float64):
            words = f"activation {layer['name']}: {values.dtype}, expected float32"
            return f"activation {layer['name']}", words
        if values is not None and values.shape != shape:
            words = f"activation {layer['name']}: shape {values.shape}, expected {shape}"
            return f"activation {layer['name']}", words
    groups: list[tuple[str, Tensors]] = [("parameter", seen.before.parameter)]
    if seen.gradient is not None:
        groups.append(("gradient", seen.gradient))
    if seen.after is not None:
        groups.append(("parameter", seen.after.parameter))
    for kind, mine in groups:
        for name, shape in shapes.items():
            if name not in mine:
                have = ", ".join(mine) or "none"
                return name, f"{name}: the contender has no {kind} of this name (it has {have})"
            if mine[name].shape != shape:
                return name, f"{name}: shape {mine[name].shape}, expected {shape} ({kind})"
        extra = [name for name in mine if name not in shapes]
        if extra:
            return extra[0], f"{extra[0]}: the contender has this {kind}, the network does not"
    states = [one.layer_state for one in (seen.before, seen.after) if one is not None]
    for moved in [*states, *([] if seen.moved is None else [seen.moved])]:
        for name, values in expected.states.items():
            if name not in moved:
                words = "the contender does not show this state of a layer: no step can be judged without"
                return name, f"{name}: {words}"
            shape = moved[name].shape
            if shape != values.shape:
                return name, f"{name}: shape {shape}, expected {values.shape} (state)"
    for moment in [one for one in (seen.before, seen.after) if one is not None]:
        for name, tensor in moment.state.items():
            parameter, _, state = name.rpartition(".")
            if parameter in shapes and tensor.shape != shapes[parameter]:
                words = f"{parameter}: shape {tensor.shape}, expected {shapes[parameter]} ({state})"
                return parameter, words
    hidden = lacking(seen, Rule.of(expected.optimizer)) if seen.after is not None else None
    if hidden is not None:
        rule = expected.optimizer["name"]
        return hidden, f"the contender does not show {hidden}: no step of {rule} can be judged without"
    return None
