"""How many steps along time the sequences of the timed steps have."""

from __future__ import annotations

from timetrial.records.model import Passes, TimeSteps
from timetrial.workloads.orders import Durations


def time_steps_record(durations: Durations | None, passes: Passes | None, steps: int) -> TimeSteps | None:
    """On average over the steps of a pass, or of all that were taken; None: nothing was timed, or the network
    reads no lengths."""
    if durations is None or passes is None or steps == 0:
        return None
    lengths = durations.of_batches(passes.steps or steps)
    return TimeSteps(useful=float(lengths.sum(axis=1).mean()), padded=lengths.shape[1] * durations.longest)
