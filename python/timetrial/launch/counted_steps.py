"""Whether a contender computes as many steps of its sequences as the way that it says is in force does."""

from __future__ import annotations

from collections.abc import Sequence

from timetrial.core import recurs
from timetrial.lengths.ways import SETTING, steps_by
from timetrial.processes.events import Ready
from timetrial.processes.outcome import LaunchError
from timetrial.questions.observed import Batches
from timetrial.records.model import Segment
from timetrial.workloads import Prepared
from timetrial.workloads.orders import lengths_name, longest_of


def way_of(ready: Ready | None) -> str | None:
    """That is in force, as a contender says it; None: it does not."""
    reading = ready.settings.get(SETTING) if ready else None
    return reading.effective if reading else None


class CountedSteps:
    """Follows the batches of a contender from one that is known on. `prepared`: what it was built of."""

    def __init__(self, prepared: Prepared, ready: Ready):
        self._way = way_of(ready)
        network = prepared.network
        # How much is computed of each sequence is a choice of layers that go on from their own last state.
        counts = network is not None and recurs(one["name"] for one in network.parameters)
        self._name = lengths_name(network) if network and counts else None
        self._longest = longest_of(prepared.network) if prepared.network and self._name else 0
        self._batches = Batches(prepared.job["streams"])
        self._next: tuple[str, int] | None = None  # stream, row; None: not known

    def stream(self, name: str) -> None:
        """The next step takes the first batch of this stream."""
        self._next = (name, 0)

    def reset(self) -> None:
        """The next step takes the first batch of the stream that is used."""
        if self._next is not None:
            self._next = (self._next[0], 0)

    def took(self, steps: int, segments: Sequence[Segment]) -> None:
        """So many steps, in these segments. LaunchError: they computed more or fewer steps of their sequences
        than the way does."""
        if self._next is None:
            return
        stream, row = self._next
        self._next = (stream, row + steps)
        counts = [one.sequence_steps for one in segments]
        computed = None if None in counts else sum(filter(None, counts))
        steps_of = steps_by(self._way)
        if computed is None or self._name is None or steps_of is None:
            return
        batches = [self._batches.batch(stream, row + one)[self._name] for one in range(steps)]
        expected = sum(steps_of(lengths, self._longest) for lengths in batches)
        if computed != expected:
            words = f"of the sequences of {steps} batches" if steps > 1 else "of the sequences of a batch"
            raise LaunchError(
                "mismatch",
                f"{SETTING} in force {self._way}, which computes {expected:,} steps {words}; its layers "
                f"computed {computed:,}",
            )
