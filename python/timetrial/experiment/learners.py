"""Which cases learn, with which seeds.

What is proven to compute the same learns the same. Of cases that differ only in what cannot change what is
computed (threads, affinity ...: case.WITHOUT_INFLUENCE) one learns for all. Contenders that are proven equal
all learn with the first seed, by which they are held against each other; each further seed is learned by one
of them for all. `learning = "every"` asks for each seed of each case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timetrial.control.arithmetic import REDUCED_NOTE
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.order import alike
from timetrial.experiment.validate import ReadyCase
from timetrial.proving.sharing import proof_group
from timetrial.records.model import Parity


def side_by_side(pupils: Sequence[ReadyCase], cpus: int, needed_bytes: int, free_bytes: int) -> int:
    """How many of them may learn at once: each with its threads on processors of its own, and in memory all
    together. `needed_bytes`: of the largest."""
    threads = max((int(one.case.settings.get("threads", cpus)) for one in pupils), default=cpus)
    fit = free_bytes // needed_bytes if needed_bytes > 0 else cpus
    return max(1, min(cpus // threads, fit))


def learners(
    experiment: Experiment,
    live: Sequence[ReadyCase],
    seed: int,
    parities: Mapping[str, Parity | None] | None = None,
) -> list[ReadyCase]:
    """Who of `live` learns with the seed of this number, from 0, in their order: nobody without [train], and
    none that has no accuracy. `parities`: by content id; None: before there are any, of those that may get
    one."""
    if experiment.spec.train is None:
        return []
    able = [one for one in live if one.case.task == "train" and one.checked and one.checked.has_accuracy]
    if experiment.spec.measure.learning == "every":
        return able

    def is_proven(one: ReadyCase) -> bool:
        if parities is None:
            return proof_group(one) is not None
        parity = parities.get(one.case.content_id)
        return parity is not None and parity.status == "passed"

    def computes(one: ReadyCase) -> Any:
        """The same for all that are proven to compute the same numbers."""
        case, parity = one.case, (parities or {}).get(one.case.content_id)
        if not is_proven(one) or (parity and REDUCED_NOTE in parity.notes):
            return case.id
        work = case.workload
        what = work.network, work.dataset, work.batch_size, work.buckets, sorted(work.optimizer.items())
        return repr((what, case.dtype, case.semantics, case.device))

    # Threads are listed as they grow, and several with few of them learn side by side.
    chosen = {one.case.training_id: one.case.id for one in reversed(able)}
    pupils = [one for one in able if not is_proven(one) or chosen[one.case.training_id] == one.case.id]
    teaching = {group[seed % len(group)].case.id for group in alike(pupils, computes)}
    return [one for one in pupils if not seed or one.case.id in teaching]
