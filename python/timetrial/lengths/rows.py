"""What a row has of sequences, from the records of its launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from timetrial.records.model import LaunchRecord, TimeSteps
from timetrial.statistics.intervals import Estimate, positive_location


@dataclass(frozen=True)
class SequenceRow:
    """Their steps: those that count, and those there are."""

    steps: TimeSteps  # of a mean training step over launches, each of which has an order of its own
    useful_per_s: Estimate | None  # those that count, over the step time

    @staticmethod
    def of(launches: Iterable[tuple[LaunchRecord, float | None]]) -> SequenceRow | None:
        """Of timed ones, with their step times [ns]; None: no record tells of sequences."""
        known = [(record.time_steps, step_ns) for record, step_ns in launches if record.time_steps]
        if not known:
            return None
        computed = [steps.computed for steps, _ in known if steps.computed is not None]
        return SequenceRow(
            TimeSteps(
                useful=fmean(steps.useful for steps, _ in known),
                computed=fmean(computed) if len(computed) == len(known) else None,
                padded=known[0][0].padded,
            ),
            positive_location([steps.useful / (step_ns * 1e-9) for steps, step_ns in known if step_ns]),
        )

    def facts(self) -> Iterator[tuple[str, str]]:
        """Name and value, for `timetrial show`."""
        steps = self.steps
        words = f"{steps.useful:,.0f} of {steps.padded:,} in a batch count ({100 * steps.useful_share:.0f} %)"
        if steps.computed is not None:
            words += f"; computed: {steps.computed:,.0f} ({steps.computed / steps.useful:.2f} times as many)"
        yield "steps of sequences", words
        if self.useful_per_s is not None:
            yield "useful steps/s", f"{self.useful_per_s.estimate:,.0f}"
