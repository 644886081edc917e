"""Does this backend compute this network? Its proof against the judge's, tensor by tensor.

The proof batch is continuous and random, so it has no ties; the workload's own images may have equal pixels,
where max pooling may legally choose another one. A backend that differs only there passes, with a note.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from timetrial.launch.flips import follows_its_own_gradients
from timetrial.launch.proof import PROOF_STEPS, Proof, Tensors, relative_l2
from timetrial.records.model import Comparison, Parity
from timetrial.workloads import Prepared

LOSS_TOLERANCE = 5e-6  # relative
GRADIENT_TOLERANCE = 2e-5  # relative L2; also of activations and outputs
PARAMETER_TOLERANCE = 1e-5  # relative L2, after five steps
# How far rounded decisions (flips.py) may lead a gradient, and within five steps a parameter: one unit that
# is off for one of 64 images moved a bias, which begins at 0, by 1.3 %. Losses of later steps follow the
# parameters, but little: a whole step changes them by some percent.
FLIP_LIMIT = 1e-2
PARAMETER_FLIP_LIMIT = 3e-2
LOSS_PER_PARAMETER = 0.05
TIE_LIMIT = 1e-2  # how far equal pixels may lead the loss within five steps

OTHER_GRADIENT = "second batch: gradient"
_LATER_LOSSES = tuple(f"loss of step {step}" for step in range(2, PROOF_STEPS + 1))

Measure = Literal["relative", "relative_l2"]


def unproven(reason: str, losses: Sequence[float] = ()) -> Parity:
    """No judgment: the backend computes no network, or nobody could judge it."""
    return Parity(status="unproven", reason=reason, losses=list(losses))


@dataclass(frozen=True)
class Expected:
    """What the workload says about its network: parameters with their initial values, and names of layers,
    both in the network's order; the optimizer as in the job file."""

    initial: Tensors
    nodes: Sequence[str]
    optimizer: Mapping[str, Any]


def expected_of(prepared: Prepared) -> Expected:
    """What a prepared workload says."""
    nodes = prepared.job["network"]["nodes"]
    return Expected(
        initial={
            parameter["name"]: np.load(parameter["file"], mmap_mode="r", allow_pickle=False)
            for node in nodes
            for parameter in node["parameters"]
        },
        nodes=[node["name"] for node in nodes if node["kind"] != "input"],
        optimizer=prepared.job["optimizer"],
    )


def compare(contender: Proof, judge: Proof, expected: Expected, judge_name: str) -> Parity:
    """The verdict."""
    wrong_form = _form(contender, judge, expected)
    if wrong_form is not None:
        tensor, reason = wrong_form
        return Parity(
            status="failed", judge=judge_name, tensor=tensor, reason=reason, losses=contender.train_losses
        )
    names = list(expected.initial)
    strict = _on_the_proof_batch(contender, judge, names, expected.nodes)
    own = _on_the_workloads_batches(contender, judge, names)
    failed = [comparison for comparison in strict if not comparison.passed]
    notes = []
    if failed and _only_flips(failed, strict, contender, expected):
        notes, failed = ["flips"], []
    if not failed and not all(comparison.passed for comparison in own):
        if _only_ties(own):
            notes.append("ties")
        else:
            failed = [comparison for comparison in own if not comparison.passed]
    comparisons = [*strict, *own]
    within = [c for c in comparisons if c.error is not None and c.passed]
    worst = max(within, key=lambda comparison: comparison.error or 0.0, default=None)
    named = failed[0] if failed else worst
    return Parity(
        status="failed" if failed else "passed",
        judge=judge_name,
        max_error=named.error if named else None,
        tensor=named.tensor if named else None,
        reason=_reason(failed[0], contender, judge) if failed else None,
        notes=notes,
        comparisons=comparisons,
        losses=contender.train_losses,
    )


def _only_flips(
    failed: list[Comparison], strict: list[Comparison], contender: Proof, expected: Expected
) -> bool:
    """Only this differs, and little: gradients of one of the two batches, while the other's agree; and what
    comes after the first step, while the steps follow the contender's own gradients."""
    by_name = {comparison.tensor: comparison for comparison in strict}
    gradients = [comparison for comparison in failed if "gradient " in comparison.tensor]
    for comparison in gradients:
        rival = by_name[_on_the_other_batch(comparison.tensor)]
        if not rival.passed or comparison.error is None or comparison.error > FLIP_LIMIT:
            return False
    failed = [comparison for comparison in failed if comparison not in gradients]
    if not failed:
        return True
    parameters = [c for c in strict if c.tensor.startswith("parameter ")]
    if any(c.error is None or c.error > PARAMETER_FLIP_LIMIT for c in parameters):
        return False
    largest = max((c.error or 0.0 for c in parameters), default=0.0)
    for comparison in failed:
        error = math.inf if comparison.error is None else comparison.error
        is_output = comparison.tensor == "output" and error <= largest
        is_later_loss = comparison.tensor in _LATER_LOSSES and error <= LOSS_PER_PARAMETER * largest
        if comparison not in parameters and not is_output and not is_later_loss:
            return False
    return follows_its_own_gradients(contender, expected.initial, expected.optimizer, PARAMETER_TOLERANCE)


def _on_the_other_batch(tensor: str) -> str:
    name = tensor.rpartition("gradient ")[2]
    return f"gradient {name}" if tensor.startswith(OTHER_GRADIENT) else f"{OTHER_GRADIENT} {name}"


def _only_ties(own: list[Comparison]) -> bool:
    """Equal rivals change gradients, never a forward pass: the first loss must agree and the others nearly.
    A parameter may differ by much: all that moves a bias over blank images may come from ties."""
    for comparison in own:
        limit = math.inf
        if comparison.measure == "relative":
            first = comparison.tensor.endswith("loss of step 1")
            limit = comparison.tolerance if first else TIE_LIMIT
        if comparison.error is None or comparison.error > limit:
            return False
    return True


def compare_losses(timed: Sequence[float], proof: Parity) -> str | None:
    """The first losses of a timed launch against its proof's; words for the first that differs."""
    for step, (mine, proven) in enumerate(zip(timed, proof.losses, strict=False), start=1):
        error = _relative(mine, proven)
        if not error <= LOSS_TOLERANCE:
            return (
                f"the loss of step {step} is {mine:.9g}, in the proof it was {proven:.9g} "
                f"(relative error {error:.2g}, tolerance {LOSS_TOLERANCE:g})"
            )
    return None


def _form(contender: Proof, judge: Proof, expected: Expected) -> tuple[str, str] | None:
    """Names and shapes, before any value."""
    for name in expected.nodes:
        if name in contender.activation and name in judge.activation:
            mine_shape, shape = contender.activation[name].shape, judge.activation[name].shape
            if mine_shape != shape:
                return f"activation {name}", f"activation {name}: shape {mine_shape}, expected {shape}"
    shapes = {name: tensor.shape for name, tensor in expected.initial.items()}
    groups = (
        ("gradient", contender.gradient, judge.gradient),
        ("gradient", contender.other_gradient, judge.other_gradient),
        ("parameter", contender.parameter, judge.parameter),
    )
    for kind, mine, theirs in groups:
        if not theirs:
            continue
        for name, shape in shapes.items():
            if name not in mine:
                have = ", ".join(mine) or "none"
                return name, f"{name}: the contender has no {kind} of this name (it has {have})"
            if mine[name].shape != shape:
                return name, f"{name}: shape {mine[name].shape}, expected {shape} ({kind})"
        extra = [name for name in mine if name not in shapes]
        if extra:
            return extra[0], f"{extra[0]}: the contender has this {kind}, the network does not"
    if (
        judge.output is not None
        and contender.output is not None
        and contender.output.shape != judge.output.shape
    ):
        return "output", f"output: shape {contender.output.shape}, expected {judge.output.shape}"
    return None


def _on_the_proof_batch(
    contender: Proof, judge: Proof, names: list[str], nodes: Sequence[str]
) -> list[Comparison]:
    """In an order in which the first failure is nearest to the cause: activations from the input on,
    gradients from the loss back."""
    found = [
        _tensor(f"activation {name}", contender.activation[name], judge.activation[name], GRADIENT_TOLERANCE)
        for name in nodes
        if name in contender.activation and name in judge.activation
    ]
    if judge.loss is not None:
        mine = math.nan if contender.loss is None else contender.loss
        found.append(_loss("loss", mine, judge.loss))
    if judge.gradient:
        mine_other, theirs_other = contender.other_gradient, judge.other_gradient
        found += _group("gradient", contender.gradient, judge.gradient, reversed(names), GRADIENT_TOLERANCE)
        found += _group(OTHER_GRADIENT, mine_other, theirs_other, reversed(names), GRADIENT_TOLERANCE)
    found += _losses("loss of step", contender.losses, judge.losses)
    if judge.parameter:
        found += _group("parameter", contender.parameter, judge.parameter, names, PARAMETER_TOLERANCE)
    if judge.output is not None:
        mine_output = contender.output if contender.output is not None else np.full_like(judge.output, np.nan)
        found.append(_tensor("output", mine_output, judge.output, GRADIENT_TOLERANCE))
    return found


def _on_the_workloads_batches(contender: Proof, judge: Proof, names: list[str]) -> list[Comparison]:
    found = _losses("workload: loss of step", contender.train_losses, judge.train_losses)
    if judge.train_parameter:
        mine, theirs = contender.train_parameter, judge.train_parameter
        found += _group("workload: parameter", mine, theirs, names, PARAMETER_TOLERANCE)
    return found


def _group(what: str, mine: Tensors, theirs: Tensors, names: Any, tolerance: float) -> list[Comparison]:
    return [_tensor(f"{what} {name}", mine[name], theirs[name], tolerance) for name in names]


def _losses(what: str, mine: Sequence[float], theirs: Sequence[float]) -> list[Comparison]:
    padded = [*mine, *[math.nan] * (len(theirs) - len(mine))]
    return [_loss(f"{what} {k}", a, b) for k, (a, b) in enumerate(zip(padded, theirs, strict=False), start=1)]


def _loss(name: str, mine: float, theirs: float) -> Comparison:
    return _comparison(name, "relative", _relative(mine, theirs), LOSS_TOLERANCE)


def _tensor(name: str, mine: NDArray[Any], theirs: NDArray[Any], tolerance: float) -> Comparison:
    return _comparison(name, "relative_l2", relative_l2(mine, theirs), tolerance)


def _comparison(name: str, measure: Measure, error: float, tolerance: float) -> Comparison:
    finite = math.isfinite(error)
    return Comparison(
        tensor=name,
        measure=measure,
        error=error if finite else None,
        tolerance=tolerance,
        passed=finite and error <= tolerance,
    )


def _relative(mine: float, theirs: float) -> float:
    return abs(mine - theirs) / abs(theirs) if theirs else abs(mine)


def _reason(first: Comparison, contender: Proof, judge: Proof) -> str:
    error = "not finite" if first.error is None else f"{first.error:.2g}"
    words = (
        f"{first.tensor}: {first.measure.replace('_l2', ' L2')} error {error}, tolerance {first.tolerance:g}"
    )
    hint = _hint(first, contender, judge)
    return f"{words}; {hint}" if hint else words


def _hint(first: Comparison, contender: Proof, judge: Proof) -> str | None:
    """What kind of error it looks like, where the numbers say so."""
    if first.error is None:
        return None
    if not first.tensor.startswith("gradient "):
        if first.tensor.startswith("parameter ") and not first.passed:
            return "the gradients agree, so the update is at fault"
        return None
    zero = [name for name, tensor in contender.gradient.items() if not np.any(tensor)]
    zero = [name for name in zero if np.any(judge.gradient[name])]
    if zero and len(zero) == len(contender.gradient):
        return "every gradient is 0"
    if zero:
        return f"the gradient of {', '.join(zero)} is 0"
    factors = []
    for name, theirs in judge.gradient.items():
        square = float(np.sum(theirs.astype(np.float64) ** 2))
        if square > 0:
            factors.append(float(np.sum(contender.gradient[name].astype(np.float64) * theirs)) / square)
    if factors and np.ptp(factors) <= 1e-3 * abs(factors[0]) and abs(factors[0] - 1) > 1e-3:
        return f"every gradient is {factors[0]:.4g} times the judge's"
    return None
