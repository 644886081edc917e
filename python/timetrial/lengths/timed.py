"""How many steps along time the sequences of the timed steps have."""

from __future__ import annotations

from collections.abc import Sequence

from timetrial.lengths.ways import steps_by
from timetrial.records.model import Passes, Segment, TimeSteps
from timetrial.workloads.orders import Durations

TIMED = ("first", "warmup", "steady", "turn")


def time_steps_record(
    durations: Durations | None, passes: Passes | None, segments: Sequence[Segment], way: str | None
) -> TimeSteps | None:
    """Those that count and those there are, on average over the steps of a pass, or of all that were taken;
    those that were computed as the contender counted them, otherwise by the way that it says is in force.
    None: nothing was timed, or the network reads no lengths."""
    steps = sum(one.steps for one in segments)
    if durations is None or passes is None or steps == 0:
        return None
    lengths = durations.of_batches(passes.steps or steps)
    longest = durations.longest
    computed = _counted([one for one in segments if one.kind in TIMED])
    steps_of = steps_by(way)
    if computed is None and steps_of is not None:
        computed = sum(steps_of(batch, longest) for batch in lengths) / len(lengths)
    return TimeSteps(
        useful=float(lengths.sum(axis=1).mean()), computed=computed, padded=lengths.shape[1] * longest
    )


def _counted(segments: Sequence[Segment]) -> float | None:
    """Of a training step; None: somewhere nobody counted."""
    counts = [one.sequence_steps for one in segments]
    if not counts or None in counts:
        return None
    return sum(filter(None, counts)) / sum(one.steps for one in segments)
