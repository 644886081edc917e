"""`dataset_else`: what is trained on where the data set that one would rather have is not ready here."""

from __future__ import annotations

from collections.abc import Callable

from timetrial.cases.spec import Spec
from timetrial.errors import InputError

ELSE = "dataset_else"


def with_ready_dataset(spec: Spec, is_ready: Callable[[str], bool]) -> tuple[Spec, str | None]:
    """The spec with one data set; and the first choice, where it is the second one. InputError: there is no
    first one, or several."""
    elsewhere = [table for table in (*spec.contender, spec.axes) if ELSE in table]
    if elsewhere:
        raise InputError(f"{ELSE} is {elsewhere[0][ELSE]!r}; expected one value for all, in [workload].")
    if ELSE not in spec.workload:
        return spec, None
    first, second = spec.workload.get("dataset"), spec.workload[ELSE]
    if not isinstance(first, str) or not isinstance(second, str):
        raise InputError(f"{ELSE} is {second!r} and dataset {first!r}; expected two names, in [workload].")
    is_ready(second)  # an InputError if there is none of this name, whichever is taken
    workload = {key: value for key, value in spec.workload.items() if key != ELSE}
    if "dataset_folder" in workload or is_ready(first):
        return spec.model_copy(update={"workload": workload}), None
    return spec.model_copy(update={"workload": {**workload, "dataset": second}}), first
