"""How closely a contender must agree with the judge: as f32 does, or, where a setting asks for less, as that.

f32 rounds at 6e-8, and all tolerances of the proof are some hundred times that. A math mode of oneDNN lets
factors of products round at 2^-9 (bf16) to 2^-12 (tf32): outputs are then off by up to half a percent, and
since a relu or a pooling that lies so near its edge decides otherwise, gradients by a tenth. No excuse is
looked for in single decisions. What is proven so is the shape of the work, no arithmetic, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from timetrial.control.arithmetic import MATH_MODE, STRICT
from timetrial.records.model import Comparison


@dataclass(frozen=True)
class Precision:
    """A parity class; the most that something may be off, relative. `way`: of five steps that nobody looked
    at, which is no proof of arithmetic, but that none of them was left out, done twice or done by other
    means."""

    value: float  # L2, of activations and outputs
    gradient: float  # L2
    loss: float  # of the first step
    way: float  # L2


F32 = Precision(value=2e-5, gradient=2e-5, loss=5e-6, way=0.05)
REDUCED = Precision(value=0.02, gradient=0.25, loss=0.01, way=0.4)


def precision_of(settings: Mapping[str, str]) -> Precision:
    """The class that a case is proven in, by what it asks for: nobody else may compute in less than f32."""
    return F32 if settings.get(MATH_MODE, STRICT) == STRICT else REDUCED


def is_reduced(comparisons: Sequence[Comparison]) -> bool:
    """Whether errors are larger than f32 has them."""
    products = (one for one in comparisons if one.tolerance in (REDUCED.value, REDUCED.gradient))
    return any(one.error is None or one.error > F32.value for one in products)
