"""The allocator of what is compared closely: the same for all sides, and settled.

Left alone, glibc's allocator gives memory back to the kernel and takes it anew in every step, or never, by
accident of a process's heap: launches of one contender then differ by 5 to 10 % (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from timetrial.cases.spec import Spec
from timetrial.control.malloc import VARIABLES, WHOLE
from timetrial.experiment.experiment import Experiment, build

# By which glibc's allocator is told, or another one takes its place.
_VARIABLES = {"LD_PRELOAD", "GLIBC_TUNABLES", *VARIABLES.values()}


def settled(spec: Spec) -> Spec:
    """With malloc=keep for every contender, unless somebody says something about an allocator: of one side,
    or in the variables that launches get. Then none is touched: sides differ in what was asked alone."""
    tables = (spec.axes, *spec.contender)
    if any(map(_says, tables)) or _VARIABLES & set(spec.environment):
        return spec
    return spec.model_copy(update={"axes": {**spec.axes, WHOLE: "keep"}})


def with_settled_allocator(experiment: Experiment) -> Experiment:
    """The same experiment, measured so."""
    spec = settled(experiment.spec)
    if spec is experiment.spec:
        return experiment
    return replace(build(spec, again=experiment.again), remarks=experiment.remarks)


def _says(keys: Mapping[str, Any]) -> bool:
    return any(key == WHOLE or key.startswith(f"{WHOLE}.") for key in keys)
