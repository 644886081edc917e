"""What a launch does next, and when it is enough. Fixed sizes, for now: this is the one place that knows.

A launch is a sequence of stages. Within a stage one segment is always queued ahead, so the contender never
waits; between stages it does wait, while the parent looks at it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from timetrial.launch.plan import Measure
from timetrial.records.model import SegmentKind

SEGMENT_NS = 250_000_000
MAX_SEGMENT_STEPS = 65_535  # a window holds 65,536 stamps, and a segment begins with one of its own
DETAILED_STAMPS_PER_STEP = 5
PROFILE_ROUNDS = 4  # of profiled steps, each between two plain segments
MAX_PROFILED_STEPS = 250  # in a round
TURN_NS = 20_000_000  # of a side in a race
FEWEST_TURN_STEPS = 10
LONGEST_TURN_NS = 1_000_000_000  # unless FEWEST_SLOW_STEPS take longer
FEWEST_SLOW_STEPS = 3


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


def speed_stages(measure: Measure, *, has_parts: bool) -> Iterator[Stage]:
    """First step, warm-up, steady, and a few steps with their parts."""
    left = measure.max_steps
    yield Stage("first", 1)
    warmup_steps = max(1, left // 3)
    yield Stage("warmup", warmup_steps, measure.warmup_ns, min(SEGMENT_NS, measure.warmup_ns))
    yield Stage(
        "steady", max(1, left - warmup_steps - 1), measure.steady_ns, min(SEGMENT_NS, measure.steady_ns)
    )
    if has_parts and measure.detailed_steps > 0:
        steps = min(measure.detailed_steps, MAX_SEGMENT_STEPS // DETAILED_STAMPS_PER_STEP)
        yield Stage("detailed", steps, SEGMENT_NS, SEGMENT_NS, parts=True)


def race_warmup_stages(measure: Measure) -> Iterator[Stage]:
    """First step, then pieces of warm-up, for as long as the caller wants more and the budget lasts."""
    yield Stage("first", 1)
    left_ns = measure.warmup_ns
    while left_ns > 0:
        piece_ns = min(left_ns, max(TURN_NS, (measure.warmup_ns - left_ns) // 4))
        yield Stage("warmup", measure.max_steps, piece_ns, piece_ns)
        left_ns -= piece_ns


def segment_steps(step_ns: float) -> int:
    """Steps of a turn, the same for each side; `step_ns` is what the fastest needs."""
    steps = max(FEWEST_TURN_STEPS, math.ceil(TURN_NS / step_ns))
    slowest = max(FEWEST_SLOW_STEPS, int(LONGEST_TURN_NS / step_ns))
    return min(steps, slowest, MAX_SEGMENT_STEPS)


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


def learning_stages(measure: Measure, steps_per_epoch: int) -> Iterator[Stage]:
    """Whole epochs, each followed by an evaluation."""
    for _ in range(measure.epochs):
        yield Stage("train", steps_per_epoch, evaluate=True)


def next_order(stage: Stage, progress: Progress) -> Order | None:
    """The next segment of a stage; None when what is done and queued is enough."""
    steps_left = stage.total_steps - progress.steps - progress.queued_steps
    if steps_left <= 0:
        return None
    if stage.total_ns and progress.ns + progress.queued_ns >= stage.total_ns:
        return None
    return Order(min(steps_left, MAX_SEGMENT_STEPS), stage.segment_ns)


def stop_reason(stages: list[tuple[Stage, Progress]]) -> str:
    """Why the measurement ended, in one word: `epochs`, `time`, or `max_steps` (cut short)."""
    timed = [(stage, progress) for stage, progress in stages if stage.kind == "steady"]
    if not timed:
        return "epochs"
    stage, progress = timed[-1]
    return "time" if progress.ns >= stage.total_ns else "max_steps"
