"""What a run will take, said beforehand (`--dry-run`)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from timetrial.cases.spec import Train
from timetrial.experiment.effort import Sizes, planned
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.heats import is_framework
from timetrial.experiment.learners import learners, side_by_side
from timetrial.experiment.memory import proofs_at_once, side_by_side_at_most
from timetrial.experiment.validate import ReadyCase
from timetrial.progress import Stage
from timetrial.proof.parts import part_of
from timetrial.proving.sharing import proven_ones
from timetrial.records.model import Purpose
from timetrial.statistics.scatter import degrees_of

# Rough by nature: only for the estimate, never for a result.
_START_S = {"native": 0.2, "framework": 4.0, "callable": 1.0}
_RESOURCES_S = 2.5  # of a resource launch, behind its first step
_PROOF_S = 1.5
_PROOF_STEPS = 30  # of a contender, its own recipe among them
# Multiply-accumulates a second of the judge of large networks, and for how many gradients of a proof's batch
# it is asked.
_JUDGED_PER_S, _ASKED = 5e9, 14
_FLOPS_PER_THREAD = 35e9  # a typical step, not a peak
TYPICAL_RATIO_SCATTER = 0.015 * math.sqrt(2)
_TYPICAL_STEP_SCATTER = 0.05  # of the steps of one launch
_STEPS_PER_EFFECTIVE = 2.0
_WARMUP_SHARE = 0.7  # of the longest that a launch may warm up before its turns


@dataclass(frozen=True)
class Forecast:
    """How many launches, how long, and which difference they can show."""

    stages: dict[Purpose, Stage]  # of what is launched, in order: how many, how long
    unavailable: int
    seconds: float
    most_seconds: float  # if every case gets its most launches
    visible_difference: float  # a fraction, if ratios of launches scatter by `scatter`
    scatter: float  # standard deviation of ln(ratio) between launches that this expects
    half_width: float | None  # of the median ratio, if launches are added until it is reached
    most_launches: int  # of a case, then

    @property
    def launches(self) -> int:
        """All of them."""
        return sum(stage.launches for stage in self.stages.values())


def forecast(
    experiment: Experiment, ready: Sequence[ReadyCase], scatter: float = TYPICAL_RATIO_SCATTER
) -> Forecast:
    """For the cases that can be launched here. `scatter`: standard deviation of ln(ratio) between
    launches."""
    sizes, train = experiment.sizes, experiment.spec.train
    live = [one for one in ready if one.unavailable is None]
    proofs = proven_ones(live)
    proving = sum(map(proof_s, proofs)) / proofs_at_once(proofs)
    proving += sum(map(judging_s, proofs))  # one after the other
    isolated = experiment.spec.measure.isolated
    speed = planned(sizes, len(live), isolated=isolated)
    n = speed.fewest
    timed_s = _plain_steps_s if isolated else _turns_s
    one_by_one = sum(start_s(one) + timed_s(one, sizes) for one in live)
    slow = [start_s(one) for one in live if is_framework(one)]  # side by side
    saved = 0.0 if isolated else sum(slow) * (1 - 1 / side_by_side_at_most(len(slow)))
    each = one_by_one - saved
    first = one_by_one if sizes.first_one_by_one else each
    learned, learning = 0, 0.0
    for number in range(sizes.learning_seeds if train else 0):
        assert train is not None
        pupils = learners(experiment, live, number)
        at_once = side_by_side(pupils, len(os.sched_getaffinity(0)), 0, 0)
        learned += len(pupils)
        learning += sum(start_s(one) + _learning_s(one, train) for one in pupils) / at_once
    resources = experiment.spec.measure.resource_launches
    visible = float(special.stdtrit(degrees_of(n), 0.975)) * scatter / math.sqrt(n) if n > 1 else math.inf
    stages: dict[Purpose, Stage] = {
        "proof": Stage(len(proofs), proving),
        "speed": Stage(len(live) * n, first + (n - 1) * each if n else 0.0),
        "learning": Stage(learned, learning),
        "resources": Stage(
            len(live) * resources, resources * sum(start_s(one) + _RESOURCES_S for one in live)
        ),
    }
    seconds = sum(stage.seconds or 0.0 for stage in stages.values())
    return Forecast(
        stages=stages,
        unavailable=len(ready) - len(live),
        seconds=seconds,
        most_seconds=seconds + (speed.most - n) * each,
        visible_difference=visible,
        scatter=scatter,
        half_width=speed.half_width,
        most_launches=speed.most,
    )


def proof_s(one: ReadyCase) -> float:
    """Of a proof launch."""
    return start_s(one) + _PROOF_S + _PROOF_STEPS * step_s(one, one.case.task)


def judging_s(one: ReadyCase) -> float:
    """Of a proof behind it."""
    network = one.checked.network if one.checked else None
    if network is None:
        return 0.0
    work = network.multiply_accumulates("gradient") * part_of(network) / network.batch_size
    return work * _ASKED / _JUDGED_PER_S


def start_s(one: ReadyCase) -> float:
    """From exec to the first step."""
    return _START_S[one.contender.kind] if one.contender else 0.0


def turns_warmup_ns(step_ns: float, most_ns: int) -> float:
    """Of a launch in front of its turns."""
    from timetrial.heats.lengths import FEWEST_WARMUP_STEPS

    return max(_WARMUP_SHARE * most_ns, FEWEST_WARMUP_STEPS * step_ns)


def _plain_steps_s(one: ReadyCase, sizes: Sizes) -> float:
    """Of a speed launch. By the standard error of a median, 1.25 times that of a mean."""
    effective = (1.25 * 1.96 * _TYPICAL_STEP_SCATTER / sizes.rule.half_width) ** 2
    steps = max(sizes.rule.min_steps, _STEPS_PER_EFFECTIVE * max(sizes.rule.min_effective, effective))
    return min(sizes.budget_ns / 1e9, max(sizes.min_ns / 1e9, steps * step_s(one, one.case.task)))


def _turns_s(one: ReadyCase, sizes: Sizes) -> float:
    """Of a launch in a heat, warm-up and turns."""
    from timetrial.heats.lengths import TURN_NS, rides_of, turn_steps

    step_ns = 1e9 * step_s(one, one.case.task) or TURN_NS
    turn_ns = turn_steps(step_ns) * step_ns
    warmup_ns = turns_warmup_ns(step_ns, sizes.turns_warmup_ns)
    return (warmup_ns + rides_of(turn_ns, sizes.rounds, sizes.turns_ns) * turn_ns) / 1e9


def _learning_s(one: ReadyCase, train: Train) -> float:
    assert one.checked is not None
    steps = train.epochs * (one.checked.samples // (one.case.workload.batch_size or 1))
    return min(steps, train.most_steps or steps) * step_s(one, "train")


def step_s(one: ReadyCase, task: str) -> float:
    """Of a step. 0 where nobody knows what a step computes."""
    if one.checked is None or one.checked.network is None:
        return 0.0
    threads = int(one.case.settings.get("threads", "1"))
    return 2 * one.checked.network.multiply_accumulates(task) / (_FLOPS_PER_THREAD * threads)
