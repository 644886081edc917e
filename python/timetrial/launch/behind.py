"""What a step of somebody's own leaves behind: work that goes on when it has returned, and helpers that go on
while it is stopped."""

from __future__ import annotations

from timetrial.cases.environment import variables_of
from timetrial.control.openmp import tells_how_to_wait
from timetrial.launch.channel import Channel
from timetrial.launch.decisions import Stage
from timetrial.observing.aftermath import Aftermath

FEWEST_STEPS = 4  # one behind the other, that are looked behind
MOST_NS = 200_000_000  # that these take, unless one takes longer


def may_be_looked_behind(channel: Channel) -> bool:
    """Of a step of somebody's own. Not where threads were told never to sleep: they would look like work
    that never ends."""
    settings = channel.plan.case.settings
    spins = tells_how_to_wait({*settings, *variables_of(settings), *channel.plan.environment})
    return channel.is_own_step and not spins


def leaves_work(channel: Channel, aftermath: Aftermath, step_ns: float) -> bool:
    """Whether steps return before their work is done. It is asked behind several steps in a row."""
    runner = channel.runner

    def single() -> tuple[int, int]:
        runner.run_stage(Stage("warmup", 1))
        first, last = runner.spans[-1]
        return last - first, last

    return aftermath.leaves_work(runner.spans[-1][1], step_ns, single)


def leaves_work_alone(channel: Channel, aftermath: Aftermath) -> bool:
    """The same behind the first step of a launch that has the machine to itself."""
    if not may_be_looked_behind(channel):
        return False
    progress = channel.runner.run_stage(Stage("warmup", FEWEST_STEPS, MOST_NS, MOST_NS))
    return leaves_work(channel, aftermath, progress.ns / progress.steps)
