"""Single comparisons: what a contender showed beside what the judge gets, with the words for both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.sizes import UNIT, distance, norm
from timetrial.proof.expected import Expected
from timetrial.questions.observed import Look, Observation, Tensors
from timetrial.records.model import Comparison

Measure = Literal["relative", "relative_l2"]


def named(seen: Observation, what: str) -> str:
    """With the moment at which it was seen, as records say it."""
    return f"{seen.name}: {what}" if seen.name else what


def start_comparisons(seen: Observation, expected: Expected) -> Iterator[Comparison]:
    """Right after a reset everything is as the workload says, to the last bit; only what differs is
    listed."""
    before = seen.before
    for mine, initial in ((before.parameter, expected.initial), (before.layer_state, expected.states)):
        for name, values in initial.items():
            if not np.array_equal(mine[name], values):
                error = _relative_l2(mine[name], values)
                yield comparison(named(seen, f"initial value {name}"), "relative_l2", error, 0.0)
    for name, values in seen.before.state.items():
        if np.any(values):
            error = norm(values.astype(np.float64))
            yield comparison(named(seen, f"initial {_state(name)}"), "relative_l2", error, 0.0)


def _state(name: str) -> str:
    """As people read it: "velocity fc2.bias"."""
    parameter, _, state = name.rpartition(".")
    return f"{state} {parameter}"


def kept_comparisons(seen: Observation, kept: Look) -> Iterator[Comparison]:
    """What an evaluation changed, which must be nothing, to the last bit; only what differs is listed."""
    groups = (
        ("parameter", seen.before.parameter, kept.parameter),
        ("", seen.before.state, kept.state),
        ("state", seen.before.layer_state, kept.layer_state),
    )
    for kind, before, behind in groups:
        for name, values in before.items():
            if name in behind and not np.array_equal(values, behind[name]):
                error = _relative_l2(behind[name], values)
                what = f"{kind} {name}" if kind else _state(name)
                yield comparison(named(seen, f"{what} that it changed"), "relative_l2", error, 0.0)


def state_comparison(
    seen: Observation, behind: Tensors, name: str, judged: Tensors, tolerance: float, besides: float
) -> Comparison:
    """Change against change; a state that is kept in f32 is off by rounding. `besides`: what it may be off
    by, absolute."""
    before = np.asarray(seen.before.layer_state[name], np.float64)
    mine, theirs = np.asarray(behind[name], np.float64), judged[name]
    size = norm(theirs - before) or 1.0
    limit = tolerance * size + 4 * UNIT * (norm(theirs) + norm(before)) + besides
    return comparison(named(seen, f"state {name}"), "relative_l2", norm(mine - theirs) / size, limit / size)


def statistic_size(states: Tensors, name: str) -> float:
    """The size of the terms of the mean or the variance of a normalization, which a sum over a channel is
    off by parts of; 0 for other states. Whoever takes the variance from the mean of squares has the squares
    of the mean among its terms."""
    layer, _, own = name.rpartition(".")
    mean, variance = (states.get(f"{layer}.{one}") for one in ("running_mean", "running_var"))
    if mean is None or variance is None:
        return 0.0
    squares = np.abs(variance) + mean**2
    return norm(squares) if own == "running_var" else norm(np.sqrt(squares))


def tensor_comparison(
    name: str, mine: NDArray[Any], theirs: NDArray[Any], tolerance: float, size: float | None = None
) -> Comparison:
    """In the Euclidean norm. `size`: what the error is measured by, if not by the norm of `theirs`."""
    if mine.shape != theirs.shape:
        return comparison(name, "relative_l2", math.nan, tolerance)
    size = norm(theirs) if size is None else size
    return comparison(name, "relative_l2", distance(mine, theirs) / (size or 1.0), tolerance)


def comparison(name: str, measure: Measure, error: float, tolerance: float) -> Comparison:
    """Passed where the error is at most the tolerance; what is not finite has no error, and is not."""
    finite = math.isfinite(error) and math.isfinite(tolerance)
    return Comparison(
        tensor=name,
        measure=measure,
        error=error if finite else None,
        tolerance=tolerance if finite else 0.0,
        passed=finite and error <= tolerance,
    )


def relative_distance(mine: float, theirs: float) -> float:
    """Of two numbers; infinity for what is not finite, the plain one where theirs is 0."""
    distance = abs(mine - theirs) / (abs(theirs) or 1.0)
    return distance if math.isfinite(distance) else math.inf


def _relative_l2(mine: NDArray[Any], theirs: NDArray[Any]) -> float:
    """|mine - theirs| / |theirs|, in double precision; the plain distance where |theirs| is 0."""
    return distance(mine, theirs) / (norm(theirs) or 1.0)


def reason_of(first: Comparison, words: str | None) -> str:
    """Of the first that failed, with the `words` of a hint, if there are any."""
    error = "not finite" if first.error is None else f"{first.error:.2g}"
    measure = first.measure.replace("_l2", " L2")
    said = f"{first.tensor}: {measure} error {error}, tolerance {first.tolerance:.2g}"
    return f"{said}; {words}" if words else said
