"""What a workload says a contender must be, and whether what one showed has that form."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timetrial import npy
from timetrial.agreement.update import Rule
from timetrial.proof.cancelling import may_cancel
from timetrial.proof.rule import lacking
from timetrial.questions.observed import Batches, Observation, Tensors
from timetrial.workloads import Prepared

LOGARITHMS = ("softmax_cross_entropy", "sequence_cross_entropy")  # losses: of a probability


@dataclass(frozen=True)
class Expected:
    """What the workload says: parameters and states of layers with their initial values, and layers with
    their shapes, in the network's order; the optimizer as in the job file; the batches of its streams.
    `undecayed`: parameters that its weight decay is not for. `couples_batch`: what becomes of a sample
    depends on the others of its batch. `output`: the node that the loss reads. `is_logarithm`: the loss is
    that of a probability."""

    initial: Tensors
    nodes: Mapping[str, tuple[int, ...]]
    optimizer: Mapping[str, Any]
    batches: Batches
    states: Tensors = field(default_factory=dict)
    undecayed: frozenset[str] = frozenset()
    couples_batch: bool = False
    carries_state: bool = False
    output: str = ""
    is_logarithm: bool = False

    @functools.cached_property
    def cancelling(self) -> frozenset[str]:
        """Parameters whose gradients may cancel."""
        return may_cancel(self.initial, self.output)


def expected_of(prepared: Prepared) -> Expected:
    """What a prepared workload says."""
    nodes = prepared.job["network"]["nodes"]
    of_nodes = [one for node in nodes for one in node["parameters"]]
    kinds = {node["name"]: node["kind"] for node in nodes}

    def initial(role: str) -> Tensors:
        return {one["name"]: npy.mapped(one["file"]) for one in of_nodes if one["role"] == role}

    return Expected(
        initial=initial("parameter"),
        nodes={node["name"]: tuple(node["shape"]) for node in nodes if node["kind"] != "input"},
        optimizer=prepared.job["optimizer"],
        batches=Batches(prepared.job["streams"]),
        states=initial("state"),
        undecayed=frozenset(one["name"] for one in of_nodes if not one["decays"]),
        couples_batch=prepared.network is not None and prepared.network.couples_batch,
        carries_state=prepared.network is not None and prepared.network.carries_state,
        output=prepared.job["network"]["output"],
        is_logarithm=kinds[prepared.job["network"]["loss"]] in LOGARITHMS,
    )


def wrong_form(seen: Observation, expected: Expected) -> tuple[str, str] | None:
    """Names and shapes, before any value."""
    shapes = {name: tensor.shape for name, tensor in expected.initial.items()}
    for node, activation in (seen.activation or {}).items():
        if activation.shape != expected.nodes.get(node, activation.shape):
            words = f"activation {node}: shape {activation.shape}, expected {expected.nodes[node]}"
            return f"activation {node}", words
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
    for moment in [one for one in (seen.before, seen.after) if one is not None]:
        for name, values in expected.states.items():
            if name not in moment.layer_state:
                words = "the contender does not show this state of a layer: no step can be judged without"
                return name, f"{name}: {words}"
            shape = moment.layer_state[name].shape
            if shape != values.shape:
                return name, f"{name}: shape {shape}, expected {values.shape} (state)"
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
