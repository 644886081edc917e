"""Where the scatter of a case comes from, steps or launches, and how many of each are worth their cost.

After Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, with two levels: the median
of a launch varies because launches do and because it stands on only so many steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scatter:
    """Variances of ln(step time): of one effective step, and of a launch, unbiased, or 0."""

    within: float
    between: float


def scatter(medians: Sequence[float], errors: Sequence[float], effective: Sequence[float]) -> Scatter:
    """Of two or more launches: their medians, the standard errors of these as fractions, and how many
    independent steps each stands on. ValueError for fewer launches, or for unequal numbers of them."""
    if not len(medians) == len(errors) == len(effective) >= 2:
        raise ValueError(
            f"expected as many medians as errors and sizes, 2 or more; got {len(medians)}, {len(errors)} and "
            f"{len(effective)}"
        )
    noise = np.asarray(errors, np.float64) ** 2
    whole = float(np.var(np.log(np.asarray(medians, np.float64)), ddof=1))
    return Scatter(float(np.mean(noise * np.asarray(effective))), max(0.0, whole - float(np.mean(noise))))


def best_steps(found: Scatter, launch_cost: float, step_cost: float) -> float:
    """How many effective steps a launch should have, if `launch_cost` is what a launch takes before its first
    steady step and `step_cost` what an effective step takes, in the same unit: ceil(sqrt((launch_cost /
    step_cost) (within / between))). Infinite where launches do not differ. At least 1."""
    if found.between == 0:
        return math.inf
    return float(max(1, math.ceil(math.sqrt(launch_cost / step_cost * found.within / found.between))))


def launches_for(found: Scatter, steps: float, error: float) -> int:
    """How many launches of so many effective steps bring the standard error of their mean below `error`, a
    fraction of the step time."""
    return max(2, math.ceil((found.between + found.within / steps) / error**2))
