"""What a launch does next, and when it is enough: this is the one place that knows.

A launch is a sequence of stages. Within a stage one segment is always queued ahead, so the contender never
waits; between stages it does wait, while the parent looks at it. For how long the plain steps of a speed
launch go on is decided while they run, by `SpeedRule`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timetrial.core.recorder import MAX_SEGMENT_STEPS
from timetrial.launch.plan import Measure
from timetrial.records.model import SegmentKind
from timetrial.statistics.stopping import Judged, StopReason, judge, stop_reason

SEGMENT_NS = 250_000_000
FIRST_SEGMENT_NS = 100_000_000  # of a speed launch: quick steps are soon enough
SEGMENT_SHARE = 0.25  # of the time so far, that the next segment of a speed launch takes
LOOKING_SHARE = 0.002
DETAILED_STAMPS_PER_STEP = 5
PROFILE_ROUNDS = 4  # of profiled steps, each between two plain segments
MAX_PROFILED_STEPS = 250  # in a round
SHORTEST_PIECE_NS = 20_000_000  # of the warm-up before turns


@dataclass(frozen=True)
class Stage:
    """Segments of one kind, until `total_steps` steps are done or, if `total_ns` is set, that time is
    over. `segment_ns` 0: a segment ends by its steps only."""

    kind: SegmentKind
    total_steps: int
    total_ns: int = 0
    segment_ns: int = 0
    parts: bool = False
    evaluate: bool = False  # afterwards


@dataclass(frozen=True)
class Progress:
    """What a stage has so far: finished segments, and those still running or queued."""

    steps: int = 0
    ns: int = 0
    queued_steps: int = 0
    queued_ns: int = 0


@dataclass(frozen=True)
class Order:
    """One segment to run."""

    steps: int
    max_ns: int


class SpeedRule:
    """The plain steps of a speed launch: how long the next segment is, and whether they are enough.

    Enough is what statistics/stopping.py says: a steady state, and an interval of the median that is narrow.
    It is asked when the sizes have grown only, so that no lucky moment ends a launch, and seldom enough to
    take no more than LOOKING_SHARE of a processor. No segment is ordered beyond `budget_ns`.
    """

    def __init__(self, measure: Measure):
        self.judged: Judged | None = None
        self._measure = measure
        self._most_steps = measure.max_steps - 1  # the first step was one
        self._look_at_steps = measure.rule.next_look(0)
        self._look_at_ns = float(measure.min_ns)
        self._border_at_ns = 0.0
        self._looked_ns = 0  # processor time spent on looking

    @property
    def kind(self) -> SegmentKind:
        """Of a segment that is ordered now, as far as is known (SegmentRunner.mark_warmup knows it all)."""
        return "steady" if self.judged is not None and self.judged.steady.accepted else "warmup"

    def order(self, progress: Progress) -> Order | None:
        """The next segment; None when what is done and queued is enough, or all there may be."""
        steps_left = self._most_steps - progress.steps - progress.queued_steps
        ahead_ns = progress.ns + progress.queued_ns
        ns_left = self._measure.budget_ns - ahead_ns
        if steps_left <= 0 or ns_left <= 0 or (self.judged is not None and self.judged.enough):
            return None
        length = min(SEGMENT_NS, max(FIRST_SEGMENT_NS, int(SEGMENT_SHARE * ahead_ns)))
        return Order(min(steps_left, MAX_SEGMENT_STEPS), min(length, ns_left))

    def wants_look(self, progress: Progress) -> bool:
        """Whether time and steps have both grown enough since the last look."""
        return progress.ns >= self._look_at_ns and progress.steps >= self._look_at_steps

    def wants_border(self, progress: Progress) -> bool:
        """Whether to look at the contender now: what is counted of it while steady may begin here."""
        if progress.ns < self._border_at_ns:
            return False
        self._border_at_ns = self._measure.rule.growth * progress.ns
        return True

    def look(self, durations_ns: npt.NDArray[np.int64], progress: Progress) -> None:
        """Judges the plain steps so far."""
        began_ns = time.thread_time_ns()
        self.judged = judge(durations_ns, self._measure.rule)
        self._looked_ns += time.thread_time_ns() - began_ns
        self._look_at_steps = self._measure.rule.next_look(progress.steps)
        self._look_at_ns = max(self._measure.rule.growth * progress.ns, self._looked_ns / LOOKING_SHARE)

    def stop_reason(self, progress: Progress) -> StopReason | None:
        """After a look at all there is; None: it is not enough, and there is time for more."""
        assert self.judged is not None
        return stop_reason(
            self.judged,
            budget_spent=progress.ns >= self._measure.budget_ns,
            steps_spent=progress.steps >= self._most_steps,
        )


def detailed_stage(measure: Measure) -> Stage:
    """A few steps with a stamp after each part."""
    steps = min(measure.detailed_steps, MAX_SEGMENT_STEPS // DETAILED_STAMPS_PER_STEP)
    return Stage("detailed", steps, SEGMENT_NS, SEGMENT_NS, parts=True)


def warmup_stages(measure: Measure) -> Iterator[Stage]:
    """Pieces of warm-up, for as long as the caller wants more and the budget lasts."""
    left_ns = measure.warmup_ns
    while left_ns > 0:
        piece_ns = min(left_ns, max(SHORTEST_PIECE_NS, (measure.warmup_ns - left_ns) // 4))
        yield Stage("warmup", measure.max_steps, piece_ns, piece_ns)
        left_ns -= piece_ns


def profile_stages(measure: Measure) -> Iterator[Stage]:
    """First step, warm-up, and the plain segments around the rounds of profiled steps."""
    yield Stage("first", 1)
    yield Stage("warmup", measure.max_steps, measure.warmup_ns, min(SEGMENT_NS, measure.warmup_ns))
    plain_ns = measure.steady_ns // (PROFILE_ROUNDS + 1)
    for _ in range(PROFILE_ROUNDS + 1):
        yield Stage("steady", measure.max_steps, plain_ns, min(SEGMENT_NS, plain_ns))


def profiled_steps(plain: Progress) -> int:
    """How many steps the next round profiles: as many as the plain segment before it had, within reason."""
    return min(plain.steps, MAX_PROFILED_STEPS)


def resource_stages(measure: Measure) -> tuple[Stage, Stage]:
    """The first step, and those behind it."""
    return Stage("first", 1), Stage("steady", measure.max_steps, measure.resource_ns, SEGMENT_NS)


def learning_stages(measure: Measure, steps_per_epoch: int) -> Iterator[Stage]:
    """Whole epochs, each followed by an evaluation; the last one may be cut short."""
    left = measure.epochs * steps_per_epoch
    left = min(left, measure.most_learning_steps or left)
    while left > 0:
        yield Stage("train", min(steps_per_epoch, left), evaluate=True)
        left -= steps_per_epoch


def next_order(stage: Stage, progress: Progress) -> Order | None:
    """The next segment of a stage; None when what is done and queued is enough."""
    # A queued segment that ends by its time may hold any number of steps.
    queued_steps = 0 if stage.segment_ns else progress.queued_steps
    steps_left = stage.total_steps - progress.steps - queued_steps
    if steps_left <= 0:
        return None
    if stage.total_ns and progress.ns + progress.queued_ns >= stage.total_ns:
        return None
    return Order(min(steps_left, MAX_SEGMENT_STEPS), stage.segment_ns)
