"""Biases whose gradients cancel: what an error of such a sum is measured by.

The gradient of a bias is a sum over the samples of a batch. Where they pull both ways, as with two classes,
little is left of it, and that has the rounding of all of them: JAX 0.12 is off by 2.5e-5 in an LSTM's, MXNet
1.9.1 by 2.3e-5 in a convolution's, of 147,456 terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from timetrial.agreement.sizes import norm
from timetrial.proof.observed import Tensors, rows_of, sample_count
from timetrial.proof.parts import different
from timetrial.records.model import Comparison

if TYPE_CHECKING:
    from timetrial.proof.judge import Judge

Terms = Callable[[], Mapping[str, float]]  # what sizes_of_terms() says, computed when somebody asks


def only_biases(found: Sequence[Comparison], initial: Tensors) -> bool:
    """Whether something failed, and nothing but gradients of biases, or what comes of them."""
    failed = [one.tensor.rpartition(" ")[2] for one in found if not one.passed]
    return bool(failed) and all(name in initial and initial[name].ndim == 1 for name in failed)


def sizes_of_terms(
    judge: Judge, parameters: Tensors, batch: Tensors, initial: Tensors
) -> Mapping[str, float]:
    """Of each bias, the size of what the samples add to its gradient, whichever way; where no sample depends
    on another."""
    witness = judge.witness()
    witness.load(parameters)
    first, place = different(batch)
    total = {name: np.zeros(values.shape) for name, values in initial.items() if values.ndim == 1}
    for number, times in zip(first.tolist(), np.bincount(place).tolist(), strict=True):
        one = witness.gradient(rows_of(batch, [number]), {}, activations=False).gradient
        for name, values in total.items():
            values += times / sample_count(batch) * np.abs(one[name])
    return {name: norm(values) for name, values in total.items()}
