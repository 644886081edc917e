"""What kind of error a failed comparison looks like, where the numbers say so."""

from __future__ import annotations

import numpy as np

from timetrial.agreement.update import Rule
from timetrial.proof.judge import Answer
from timetrial.proof.rule import implied_gradient
from timetrial.questions.observed import Observation, Tensors
from timetrial.records.model import Comparison

ALIKE = 1e-3


def hint(failed: Comparison, seen: Observation, answer: Answer, rule: Rule) -> str | None:
    """Words for a failed comparison of this observation."""
    if failed.error is None:
        return None
    if seen.gradient is not None and "gradient " in failed.tensor:
        return _of_gradients(seen.gradient, answer.gradient)
    if seen.after is None or not any(f"{kind} " in failed.tensor for kind in ("parameter", *rule.states)):
        return None
    after = seen.after
    if all(np.array_equal(after.parameter[n], seen.before.parameter[n]) for n in answer.gradient):
        return "no parameter has changed: nothing was trained"
    still = [
        n
        for n in answer.gradient
        if np.array_equal(after.parameter[n], seen.before.parameter[n]) and np.any(answer.gradient[n])
    ]
    if still:
        return f"{', '.join(still)} did not change"
    used = {
        name: implied_gradient(seen, name, rule, answer.gradient, answer.sizes[name])
        for name in answer.gradient
    }
    return _of_gradients(
        {name: one for name, one in used.items() if one is not None}, answer.gradient, used=True
    )


def _of_gradients(mine: Tensors, judged: Tensors, *, used: bool = False) -> str | None:
    zero = [name for name, tensor in mine.items() if not np.any(tensor) and np.any(judged[name])]
    if zero and len(zero) == len(mine):
        return "every gradient is 0"
    if zero:
        return f"the gradient of {', '.join(zero)} is 0"
    factors = []
    for name, tensor in mine.items():
        square = float(np.sum(judged[name] ** 2))
        if square > 0:
            factors.append(float(np.sum(tensor.astype(np.float64) * judged[name])) / square)
    if factors and np.ptp(factors) <= ALIKE * abs(factors[0]) and abs(factors[0] - 1) > ALIKE:
        return f"every gradient{' that was used' if used else ''} is {factors[0]:.4g} times the judge's"
    return None
