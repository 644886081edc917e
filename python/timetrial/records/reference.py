"""Against which case each case is compared.

A reference fixes only the axes it names: with reference = {backend = "pytorch"}, each row is compared with
pytorch at that row's own threads. An axis that only one of the two has (blas.library) does not separate them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from timetrial.optimizers import flat_keys
from timetrial.records.model import CaseRecord

Facts = Mapping[str, Any]  # flat key -> value of one case


def facts_of(case: CaseRecord) -> dict[str, Any]:
    """Everything that a reference may name or that may separate two cases."""
    return {
        "backend": case.backend,  # and from the axes: of a damaged record these may lack it
        "dataset": case.dataset,
        "batch_size": case.batch_size,
        **({"buckets": case.buckets} if case.buckets > 1 else {}),
        **flat_keys(case.optimizer),
        **case.settings,
        **case.axes,
    }


def matches(facts: Facts, fixed: Mapping[str, Any]) -> bool:
    """Whether a case has every value that a reference names ("2" and 2 are the same value)."""
    return all(key in facts and str(facts[key]) == str(value) for key, value in fixed.items())


def default_reference(
    all_facts: Sequence[Facts], ok: Collection[int], contender_keys: Sequence[str]
) -> dict[str, Any] | None:
    """The first ok contender: its keys in [[contender]]; where contenders do not vary, the first ok case.

    `contender_keys`: keys of [[contender]] tables that vary, the backend first.
    """
    for index, facts in enumerate(all_facts):
        if index in ok:
            varying = [key for key in facts if len({str(other.get(key)) for other in all_facts}) > 1]
            keys = contender_keys or [key for key in varying if key != "repeat"]
            return {key: facts[key] for key in keys if facts.get(key) is not None} or {
                "backend": facts["backend"]
            }
    return None


def reference_of(index: int, all_facts: Sequence[Facts], fixed: Mapping[str, Any]) -> int | None:
    """The index of the case that case `index` is compared with; None where the experiment has none.

    Among the cases that match `fixed`, one that agrees on every other axis that both have; if several, the
    one that shares most, what neither sets (its own number of threads) included, then the first.
    """
    own = all_facts[index]
    if matches(own, fixed) and "repeat" not in fixed and str(own.get("repeat", 1)) == "1":
        return index
    best: int | None = None
    most = -1
    for other, facts in enumerate(all_facts):
        if not matches(facts, fixed) or (str(facts.get("repeat", 1)) != "1" and "repeat" not in fixed):
            continue
        free = [key for key in own if key in facts and key not in fixed and key != "repeat"]
        shared = {key for key in free if str(own[key]) == str(facts[key])}
        is_alike = all(key in shared or own[key] is None or facts[key] is None for key in free)
        if is_alike and len(shared) > most:
            best, most = other, len(shared)
    return best
