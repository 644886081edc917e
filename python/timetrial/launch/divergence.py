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


def check_bounded(observations: Sequence[Observation], first_losses: Sequence[float]) -> None:
    """The same of training that is about to diverge. There rounding decides: a tanh whose input is 20 has in
    f32 the derivative 0. `first_losses`: of the proof, from the initial values."""
    for seen in observations:
        if seen.loss is not None and first_losses and abs(seen.loss) > DIVERGED * abs(first_losses[0]):
            raise LaunchError(
                "nan",
                f"{seen.name}: the loss is {seen.loss:.3g}, and was {first_losses[0]:.3g} at first: training "
                "has diverged, and rounding decides what comes of it. A smaller optimizer.learning_rate "
                "helps",
            )
