"""All sides of a race take the same steps in their turns, however many their warm-up took."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from launching import make_plan, small_network, words

from timetrial.analysis.pairs import turns_of
from timetrial.heats.lengths import COLD_STEPS
from timetrial.launch import Course, heat_launches
from timetrial.results.results import LaunchFiles

ROUNDS = [(0, 1), (1, 0), (1, 0), (0, 1)]


@pytest.mark.parametrize("task", ["train", "gradient"])
def test_turns_have_the_same_losses(tmp_path: Path, task: str) -> None:
    # With so little momentum a pass has six steps: turns go through a whole one on however slow a machine.
    network = small_network(tmp_path)
    plans = [
        make_plan(tmp_path / name, name, network=network, task=task, momentum=0.001)
        for name in ("eigen", "cblas")
    ]
    records = heat_launches(plans, Course(ROUNDS)).records()
    sides = []
    for plan, record in zip(plans, records, strict=True):
        assert record.outcome == "ok", words(record)
        assert record.passes is not None
        assert record.passes.steps == 6
        steps = LaunchFiles(record, plan.folder).steps()
        turns = [number for number, one in enumerate(record.segments) if one.kind == "turn"]
        assert len(turns) == len(ROUNDS)
        sides.append([steps.loss[steps.segment == number] for number in turns])
        # The first step behind a reset is in no turn's times, nor are those that the pause has cooled.
        for number, times in zip(turns, turns_of(steps), strict=True):
            own = steps.duration_ns[(steps.segment == number) & ~steps.first_in_pass]
            np.testing.assert_array_equal(times, own[len(own) - len(times) :])
            assert len(times) >= len(own) - COLD_STEPS
        assert steps.first_in_pass[np.isin(steps.segment, turns)].any()
    for mine, other in zip(*sides, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3)
    together = np.concatenate(sides[0])
    assert len(np.unique(together[: plans[0].prepared.steps_per_epoch])) > 1  # not one step again and again
