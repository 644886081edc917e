"""A timed launch that has the machine to itself: plain steps until they are enough (decisions.SpeedRule)."""

from __future__ import annotations

from timetrial.launch.decisions import Progress, SpeedRule
from timetrial.launch.plan import Measure
from timetrial.launch.segments import SegmentRunner
from timetrial.observing.observe import Watch
from timetrial.statistics.stopping import StopReason


def run_alone(runner: SegmentRunner, watch: Watch, measure: Measure) -> StopReason:
    """From behind the first step to the last plain one, warm-up marked. Why it ended."""
    rule = SpeedRule(measure)
    progress: Progress | None = None
    stop: StopReason | None = None
    watch.begin_steady()

    def drained(done: Progress) -> None:
        if rule.wants_look(done):
            rule.look(runner.plain_durations_ns(), done)
        if rule.wants_border(done):
            watch.border(done.steps)

    while stop is None:
        progress = runner.run(lambda: rule.kind, rule.order, progress=progress, drained=drained)
        watch.border(progress.steps)
        rule.look(runner.plain_durations_ns(), progress)
        stop = rule.stop_reason(progress)
    assert rule.judged is not None
    cut = runner.mark_warmup(rule.judged.steady.first)
    watch.count_steady(runner.segments, cut)
    return stop
