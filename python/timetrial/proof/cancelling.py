"""Gradients that cancel: what an error of such a sum is measured by.

A gradient is a sum over the samples of a batch. Where they pull both ways, as of two classes, little is left
of it, and that has the rounding of all of them: JAX 0.12 is off by 2.5e-5 in the bias of an LSTM, MXNet 1.9.1
by 2.3e-5 in a convolution's, of 147,456 terms, and by 3e-5 in the weight of the layer in front of the loss,
over mails of two kinds. It is said of biases and of that layer only: what is wrong in the gradient of its
output is wrong in every other layer, too, and those are measured as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timetrial.agreement.sizes import norm
from timetrial.proof.parts import different
from timetrial.questions.observed import Tensors, rows_of, sample_count
from timetrial.records.model import Comparison

if TYPE_CHECKING:
    from timetrial.proof.judge import Judge

Terms = Callable[[], Mapping[str, float]]  # what sizes_of_terms() says, computed when somebody asks


def may_cancel(initial: Tensors, output: str) -> frozenset[str]:
    """The biases, and the parameters of the node `output`, which the loss reads."""
    return frozenset(
        name for name, one in initial.items() if one.ndim == 1 or name.rpartition(".")[0] == output
    )


def nothing_else(found: Sequence[Comparison], cancelling: frozenset[str]) -> bool:
    """Whether something failed, and nothing but gradients of these, or what comes of them."""
    failed = [one.tensor.rpartition(" ")[2] for one in found if not one.passed]
    return bool(failed) and cancelling.issuperset(failed)


def sizes_of_terms(
    judge: Judge, parameters: Tensors, batch: Tensors, cancelling: frozenset[str]
) -> Mapping[str, float]:
    """Of each of these, the size of what the samples add to its gradient, whichever way; where no sample
    depends on another."""
    single = judge.sized(1)
    first, place = different(batch)
    total = {name: np.zeros(np.shape(parameters[name])) for name in cancelling}
    for number, times in zip(first.tolist(), np.bincount(place).tolist(), strict=True):
        one = single.gradient(parameters, rows_of(batch, [number])).gradient
        for name, values in total.items():
            values += times / sample_count(batch) * np.abs(one[name])
    return {name: norm(values) for name, values in total.items()}
