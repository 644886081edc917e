"""The allocator of what is compared closely: the same for all sides, and settled.

Left alone, glibc's allocator gives memory back to the kernel and takes it anew in every step, or never, by
accident of a process's heap, and launches of one contender then differ (docs/statistics.md).
"""

from __future__ import annotations

from dataclasses import replace

from timetrial.cases.environment import PREFIX
from timetrial.cases.spec import Spec
from timetrial.control.malloc import VARIABLES, WHOLE
from timetrial.experiment.experiment import Experiment, build

KEPT = {WHOLE: "keep"}
# By which glibc's allocator is told, or another one takes its place.
_VARIABLES = {"LD_PRELOAD", "GLIBC_TUNABLES", *VARIABLES.values()}


def settled(spec: Spec) -> Spec:
    """With malloc=keep for every contender, unless somebody says something else about an allocator: of one
    side, or in the variables that launches get. Then none is touched: sides differ as was asked."""
    tables = (spec.axes, *spec.contender)
    said = [{key: value for key, value in table.items() if _is_allocator(key)} for table in tables]
    if any(one not in ({}, KEPT) for one in said) or _VARIABLES & set(spec.environment):
        return spec
    if KEPT in said[1:]:  # of a row that was measured so before, say
        kept = [{**table, **KEPT} for table in spec.contender]
        return spec.model_copy(update={"contender": kept})
    return spec.model_copy(update={"axes": {**spec.axes, **KEPT}})


def with_settled_allocator(experiment: Experiment) -> Experiment:
    """The same experiment, measured so."""
    spec = settled(experiment.spec)
    if spec is experiment.spec:
        return experiment
    return replace(build(spec, again=experiment.again), remarks=experiment.remarks)


def _is_allocator(key: str) -> bool:
    return key == WHOLE or key.startswith(f"{WHOLE}.") or key.removeprefix(PREFIX) in _VARIABLES
