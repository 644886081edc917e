"""How many steps along time the sequences of the timed steps have."""

from __future__ import annotations

from collections.abc import Sequence

from timetrial.lengths.ways import steps_by
from timetrial.records.model import Passes, Segment, TimeSteps
from timetrial.workloads.orders import Durations

TIMED = ("first", "warmup", "steady", "turn")
AGREES = 0.1  # of the steps of whole passes, that those of a part of one may differ by


def time_steps_record(
    durations: Durations | None, passes: Passes | None, segments: Sequence[Segment], way: str | None
) -> TimeSteps | None:
    """On average over the steps of a pass, or of all that were taken. Those computed are by the way that
    the contender says is in force, which its proof has shown; unless it counted others while it was timed.
    None: nothing was timed, or the network reads no lengths."""
    steps = sum(one.steps for one in segments)
    if durations is None or passes is None or steps == 0:
        return None
    lengths = durations.of_batches(passes.steps or steps)
    longest = durations.longest
    computed = _counted([one for one in segments if one.kind in TIMED])
    steps_of = steps_by(way)
    if steps_of is not None:
        expected = sum(steps_of(batch, longest) for batch in lengths) / len(lengths)
        if computed is None or abs(computed / expected - 1) <= AGREES:
            computed = expected
    return TimeSteps(
        useful=float(lengths.sum(axis=1).mean()), computed=computed, padded=lengths.shape[1] * longest
    )


def _counted(segments: Sequence[Segment]) -> float | None:
    """Of a training step; None: somewhere nobody counted."""
    counts = [one.sequence_steps for one in segments]
    if not counts or None in counts:
        return None
    return sum(filter(None, counts)) / sum(one.steps for one in segments)
