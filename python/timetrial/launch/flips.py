"""When a gradient, or five steps, differ from the judge's although every part of a step is right.

A ReLU's input or two rivals of a maximum may lie so close together that rounding decides: a unit of f32
is off where the judge's, in double precision, is on. On a network with millions of units that happens to
somebody on every few batches; the gradient of that step then differs a little, legally. Such a backend is
not wrong, and can show it: on another batch its gradients agree, and its own gradients, put through the
optimizer's rule in double precision, give the parameters it ended with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from timetrial.errors import InputError
from timetrial.launch.proof import Proof, Tensors, relative_l2


def follow_rule(initial: Tensors, gradients: list[Tensors], optimizer: Mapping[str, Any]) -> Tensors:
    """The parameters after one update per element of `gradients`, in double precision.

    g = gradient + weight_decay * w;  v = momentum * v + g;  w = w - learning_rate * v  (timetrial/backend.h).
    """
    if optimizer["name"] != "sgd":
        raise InputError(f"no update rule is known for the optimizer {optimizer['name']!r}")
    rate, momentum = float(optimizer["learning_rate"]), float(optimizer.get("momentum", 0.0))
    decay = float(optimizer.get("weight_decay", 0.0))
    weights = {name: np.asarray(tensor, np.float64) for name, tensor in initial.items()}
    velocity = {name: np.zeros_like(tensor) for name, tensor in weights.items()}
    for step in gradients:
        for name, tensor in weights.items():
            velocity[name] = momentum * velocity[name] + step[name].astype(np.float64) + decay * tensor
            weights[name] = tensor - rate * velocity[name]
    return weights


def follows_its_own_gradients(
    proof: Proof, initial: Tensors, optimizer: Mapping[str, Any], tolerance: float
) -> bool:
    """Whether the steps, taken one by one with the gradient before each, end where the ordinary five did, and
    both where the rule leads. `tolerance` is relative L2, per parameter."""
    if not proof.step_gradients or any(set(step) != set(initial) for step in proof.step_gradients):
        return False
    if set(proof.stepwise_parameter) != set(initial):
        return False
    followed = follow_rule(initial, proof.step_gradients, optimizer)
    return all(
        relative_l2(proof.stepwise_parameter[name], followed[name]) <= tolerance
        and relative_l2(proof.parameter[name], proof.stepwise_parameter[name]) <= tolerance
        for name in initial
    )
