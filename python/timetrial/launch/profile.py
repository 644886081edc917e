"""The profile launch: plain steps and steps with a clock around every layer, in turns.

The plain steps of the same launch show what the clocks cost and whether the layers add up to a step. They
take turns, so that a slow drift of the machine falls on both alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from timetrial.launch.decisions import profile_stages, profiled_steps
from timetrial.processes.events import ProfileDone, broken
from timetrial.records.files import mark_of, write_once
from timetrial.records.model import FileMark, ProfiledLayer
from timetrial.records.store import LAYERS_FILE

if TYPE_CHECKING:
    from timetrial.launch.channel import Channel


@dataclass
class LayerTimes:
    """Nanoseconds of each (layer, direction), one per profiled step, as the contender named them."""

    steps: int = 0
    rows: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(self, answer: ProfileDone, asked: int) -> None:
        """The answer to one `profile` command. LaunchError if it does not have every layer in every step."""
        found = {(row.node, row.direction): row.ns for row in answer.layers}
        if answer.steps != asked or len(found) != len(answer.layers):
            raise broken(f"profile: {answer.steps} of {asked} steps, or a layer twice in a direction")
        if self.rows and found.keys() != self.rows.keys():
            odd = sorted(" ".join(key) for key in found.keys() ^ self.rows.keys())
            raise broken(f"profile: not in every step: {', '.join(odd)}")
        for (node, direction), times in found.items():
            if len(times) != asked:
                raise broken(f"profile: {node} {direction} has {len(times)} times in {asked} steps")
            self.rows.setdefault((node, direction), []).extend(times)
        self.steps += asked

    def layers(self) -> list[ProfiledLayer]:
        """The rows of layers.bin."""
        return [ProfiledLayer.model_validate({"node": n, "direction": d}) for n, d in self.rows]

    def write(self, folder: Path) -> FileMark:
        """layers.bin in the launch's folder."""
        data = np.array(list(self.rows.values()), "<u8").tobytes()
        write_once(folder / LAYERS_FILE, data)
        return mark_of(data)


def run_profile(channel: Channel) -> LayerTimes:
    """Warms up, then takes plain and profiled steps in turns, plain ones first and last."""
    runner, watch = channel.runner, channel.watch
    times = LayerTimes()
    plain = None
    for stage in profile_stages(channel.plan.measure):
        if plain is not None:
            # Profiled steps train too, and leave no losses: what follows is not the proof's sequence.
            channel.files.first_losses_end()
            steps = profiled_steps(plain)
            times.add(channel.ask(f"profile {steps}", ProfileDone), steps)
            if runner.passes:
                runner.passes.skip(steps)
        elif stage.kind == "steady":
            watch.begin_steady()
        progress = runner.run_stage(stage)
        if stage.kind == "first":
            watch.after_first_step()
        elif stage.kind == "steady":
            if plain is None:
                watch.end_steady(runner.segments)
            plain = progress
    return times
