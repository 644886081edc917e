"""Training that has diverged: what comes of it is decided by rounding, so nobody is called wrong for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timetrial.processes.outcome import LaunchError
from timetrial.questions.observed import Look, Observation

DIVERGED = 1e3  # times the first loss


def check_finite(observations: Sequence[Observation]) -> None:
    """Training that has diverged is `nan`, not `wrong`."""
    for seen in observations:
        if seen.loss is not None and not np.isfinite(seen.loss):
            raise LaunchError("nan", f"{seen.name}: the loss is {seen.loss}")
    looks: list[Look] = [one for seen in observations for one in (seen.before, seen.after) if one is not None]
    for one in looks:
        for name, values in one.parameter.items():
            if not np.all(np.isfinite(values)):
                raise LaunchError("nan", f"{name} is not finite at the end")


class Divergence:
    """What is wrong where training has diverged, or is about to. There rounding decides: a tanh whose input
    is 20 has in f32 the derivative 0. `first`: the loss from the initial values, where it is known."""

    def __init__(self, observations: Sequence[Observation], first: Sequence[float]):
        self._observations = observations
        self._first = abs(first[0]) if first else None

    def check(self, failed: Observation) -> None:
        """LaunchError if what was seen up to here has diverged."""
        for seen in self._observations:
            if not all(np.all(np.isfinite(values)) for values in seen.before.parameter.values()):
                raise LaunchError("nan", f"{seen.name}: parameters are not finite: training has diverged")
            if self._first and seen.loss is not None and abs(seen.loss) > DIVERGED * self._first:
                raise LaunchError(
                    "nan",
                    f"{seen.name}: the loss is {seen.loss:.3g}, and was {self._first:.3g} at first: training "
                    "has diverged, and rounding decides what comes of it. A smaller optimizer.learning_rate "
                    "helps",
                )
            if seen is failed:
                return
