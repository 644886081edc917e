"""Everything that can be known to be wrong is said before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from timetrial.cases.case import Case, Workload
from timetrial.cases.cases import PlannedCase
from timetrial.errors import Unavailable
from timetrial.experiment.engine import Engine
from timetrial.experiment.memory import too_large
from timetrial.lengths.asked import lengths_problem

if TYPE_CHECKING:
    from timetrial.contenders import Contender
    from timetrial.workloads import Checked


@dataclass(frozen=True)
class ReadyCase:
    """A case that may be launched, or why it may not."""

    case: Case
    contender: Contender | None
    checked: Checked | None
    unavailable: str | None


def validate(planned: Sequence[PlannedCase], engine: Engine) -> list[ReadyCase]:
    """Raises InputError at the first mistake of the user; what this machine lacks becomes a row."""
    spanned = _spanned([one.case for one in planned])
    checked: dict[str, Checked | str] = {}
    found: dict[tuple[Any, ...], tuple[Contender | None, str | None]] = {}
    free = engine.free_bytes()
    ready = []
    for one in planned:
        workload = _check(one.case.workload, checked, engine)
        if not isinstance(workload, str) and workload.network is not None and one.case.task != "forward":
            workload.network.check_training()
        key = (_without_workload(one.case), one.unavailable)
        if key not in found:
            found[key] = _contender(one, spanned, engine)
        contender, unavailable = found[key]
        if isinstance(workload, str):
            ready.append(ReadyCase(one.case, contender, None, unavailable or workload))
        else:
            unavailable = unavailable or lengths_problem(one.case, workload.network, spanned)
            able = ReadyCase(one.case, contender, workload, unavailable)
            ready.append(replace(able, unavailable=unavailable or too_large(able, free)))
    return ready


def _without_workload(case: Case) -> tuple[Any, ...]:
    """All that decides who the contender is: thousands of cases may differ in batch size alone."""
    return (case.backend, case.task, case.device, case.dtype, case.semantics, *sorted(case.settings.items()))


def _contender(
    planned: PlannedCase, spanned: frozenset[str], engine: Engine
) -> tuple[Contender | None, str | None]:
    """The contender, or why this machine does not have it; or both, where only its settings cannot be had."""
    contender, unavailable = None, planned.unavailable
    try:
        contender = engine.resolve(planned.case)
        if unavailable is None:
            engine.validate_settings(planned.case, contender, spanned)
    except Unavailable as lacking:
        unavailable = unavailable or str(lacking)
    return contender, unavailable


def _check(workload: Workload, known: dict[str, Checked | str], engine: Engine) -> Checked | str:
    """The checked workload, or why this machine does not have it; each workload once."""
    key = repr(workload)
    if key not in known:
        try:
            known[key] = engine.check(workload)
        except Unavailable as lacking:
            known[key] = str(lacking)
    return known[key]


def _spanned(cases: Sequence[Case]) -> frozenset[str]:
    """Settings that have more than one value in this experiment: a value too many is a row, not a mistake."""
    names = {name for case in cases for name in case.settings}
    values = {name: {case.settings[name] for case in cases if name in case.settings} for name in names}
    return frozenset(name for name, seen in values.items() if len(seen) > 1)
