"""The allocator of what is compared closely: the same for all sides, and settled.

Left alone, glibc's allocator gives memory back to the kernel and takes it anew in every step, or never, by
accident of a process's heap: launches of one contender then differ by 5 to 10 % (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timetrial.cases.spec import Spec
from timetrial.control.malloc import WHOLE
from timetrial.experiment.experiment import Experiment, build


def settled(spec: Spec) -> Spec:
    """With malloc=keep for every contender of which nothing is said about its allocator. Who names variables
    for a library that is loaded first may mean another allocator, and is left alone."""
    if _says(spec.axes) or "LD_PRELOAD" in spec.environment:
        return spec
    if not any(_says(table) for table in spec.contender):
        return spec.model_copy(update={"axes": {**spec.axes, WHOLE: "keep"}})
    tables = [table if _says(table) else {**table, WHOLE: "keep"} for table in spec.contender]
    return spec.model_copy(update={"contender": tables})


def with_settled_allocator(experiment: Experiment) -> Experiment:
    """The same experiment, measured so."""
    spec = settled(experiment.spec)
    return experiment if spec is experiment.spec else build(spec, again=experiment.again)


def _says(keys: Mapping[str, Any]) -> bool:
    return any(key == WHOLE or key.startswith(f"{WHOLE}.") for key in keys)
