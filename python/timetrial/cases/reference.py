"""Whether the reference that an experiment asks for is one of its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timetrial.cases.case import Case
from timetrial.errors import InputError
from timetrial.records.reference import matches


def check_reference(fixed: Mapping[str, Any] | None, cases: Sequence[Case]) -> None:
    """Raises InputError for a reference that no case is."""
    if not fixed or any(matches(case.facts(), fixed) for case in cases):
        return
    asked = ", ".join(f"{key} = {value!r}" for key, value in fixed.items())
    have = "; ".join(
        f"{key}: {', '.join(sorted({str(case.facts().get(key)) for case in cases}))}" for key in fixed
    )
    raise InputError(f"The reference {{ {asked} }} is no case of this experiment. It has {have}.")
