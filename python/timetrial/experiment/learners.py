"""Which cases learn.

What is proven to compute the same learns the same however many threads it has: of cases that differ only in
such settings (case.WITHOUT_INFLUENCE) one learns for all, unless `learning = "every"` asks for each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from timetrial.experiment.case import NO_NETWORK
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase


def learners(
    experiment: Experiment, live: Sequence[ReadyCase], unproven: Collection[str] = ()
) -> list[ReadyCase]:
    """Of `live`, in their order; without [train] nobody. The last of those that share a training: threads are
    listed as they grow, and more of them take less time. Those whose content id is in `unproven` share none.
    """
    if experiment.spec.train is None:
        return []
    able = [one for one in live if one.case.task == "train" and one.case.workload.network != NO_NETWORK]
    if experiment.spec.measure.learning == "every":
        return able
    chosen = {one.case.training_id: one.case.id for one in able}
    return [
        one for one in able if one.case.content_id in unproven or chosen[one.case.training_id] == one.case.id
    ]
