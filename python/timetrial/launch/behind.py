"""What a step of somebody's own leaves behind: work that goes on when it has returned."""

from __future__ import annotations

from timetrial.cases.environment import variables_of
from timetrial.control.openmp import tells_how_to_wait
from timetrial.launch.channel import Channel
from timetrial.launch.decisions import Stage
from timetrial.observing.aftermath import Aftermath
from timetrial.records.model import SegmentKind

FEWEST_STEPS = 4  # one behind the other, that are looked behind
MOST_NS = 200_000_000  # that these take, unless one takes longer


def may_be_looked_behind(channel: Channel) -> bool:
    """Of a step of somebody's own. Not where threads were told never to sleep: they would look like work
    that never ends."""
    settings = channel.plan.case.settings
    spins = tells_how_to_wait({*settings, *variables_of(settings), *channel.plan.environment})
    return channel.is_own_step and not spins


def work_behind_ns(channel: Channel, aftermath: Aftermath, step_ns: float, kind: SegmentKind) -> int:
    """For how long work went on behind the last step, where steps return before theirs is done; else 0. It is
    asked behind several steps in a row, and may take single ones, segments of this kind."""
    runner = channel.runner

    def single() -> tuple[int, int]:
        runner.run_stage(Stage(kind, 1))
        first, last = runner.spans[-1]
        return last - first, last

    return aftermath.work_behind_ns(runner.spans[-1][1], step_ns, single)


def look_behind_alone(channel: Channel) -> bool:
    """The same at the end of a launch that has the machine to itself, not before: a pool that fell asleep
    meanwhile works in another way. It counts with the last step. Whether there is any."""
    if channel.plan.goes_on or not may_be_looked_behind(channel):
        return False
    runner = channel.runner
    last = len(runner.segments) - 1
    seen = runner.run_stage(Stage("judged", FEWEST_STEPS, MOST_NS, MOST_NS))  # we were busy with the others
    behind_ns = work_behind_ns(channel, channel.watch.aftermath(), seen.ns / seen.steps, "judged")
    runner.add_behind(last, behind_ns)
    return behind_ns > 0
