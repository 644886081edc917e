"""Which cases learn.

What is proven to compute the same learns the same however many threads it has: of cases that differ only in
such settings (case.WITHOUT_INFLUENCE) one learns for all, unless `learning = "every"` asks for each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase


def side_by_side(pupils: Sequence[ReadyCase], cpus: int, needed_bytes: int, free_bytes: int) -> int:
    """How many of them may learn at once: each with its threads on processors of its own, and in memory all
    together. `needed_bytes`: of the largest."""
    threads = max((int(one.case.settings.get("threads", cpus)) for one in pupils), default=cpus)
    fit = free_bytes // needed_bytes if needed_bytes > 0 else cpus
    return max(1, min(cpus // threads, fit))


def learners(
    experiment: Experiment, live: Sequence[ReadyCase], unproven: Collection[str] = ()
) -> list[ReadyCase]:
    """Of `live`, in their order, those that have an accuracy; without [train] nobody. The first of those that
    share a training: threads are listed as they grow, and several with few of them learn side by side. Those
    whose content id is in `unproven` share none.
    """
    if experiment.spec.train is None:
        return []
    able = [one for one in live if one.case.task == "train" and one.checked and one.checked.has_accuracy]
    if experiment.spec.measure.learning == "every":
        return able
    chosen = {one.case.training_id: one.case.id for one in reversed(able)}
    return [
        one for one in able if one.case.content_id in unproven or chosen[one.case.training_id] == one.case.id
    ]
