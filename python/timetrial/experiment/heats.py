"""Who rides with whom: cases of the same work and the same threads are alive together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from timetrial.experiment.validate import ReadyCase
from timetrial.records.reference import matches


def heats_of(
    cases: Sequence[ReadyCase],
    reference: Mapping[str, Any] | None,
    needed_bytes: Callable[[ReadyCase], int],
    free_bytes: int,
    done: Collection[str] = (),
    *,
    mixed: bool = False,
) -> list[list[ReadyCase]]:
    """One heat for each kind of work at each number of threads (`mixed`: one for all); several where memory
    does not hold all of its cases at once. Each of these has the reference, which all ratios go through.
    Cases with the ids in `done` have ridden already, and ride once more only as the reference of others."""
    groups: dict[tuple[Any, ...], list[ReadyCase]] = {}
    for one in cases:
        groups.setdefault(() if mixed else _work(one), []).append(one)
    found = []
    for group in groups.values():
        base = next((one for one in group if reference and matches(one.case.facts(), reference)), group[0])
        left = [one for one in group if one.case.id not in done]
        if left and base not in left:
            left.insert(0, base)
        found += _that_fit(left, base, needed_bytes, free_bytes)
    return found


def is_framework(one: ReadyCase) -> bool:
    """Whether it runs in an adapter of the project's."""
    return one.contender is not None and one.contender.kind == "framework"


def largest_heat(cases: Sequence[ReadyCase], *, mixed: bool = False) -> int:
    """Cases in it at most, if memory holds them all; at least 1."""
    able = [one for one in cases if one.unavailable is None]
    return max(len(able), 1) if mixed else max(Counter(map(_work, able)).values(), default=1)


def _work(one: ReadyCase) -> tuple[Any, ...]:
    case, work = one.case, one.case.workload
    shape = (work.network, case.task, work.dataset, work.batch_size, work.buckets)
    return (*shape, case.settings.get("threads"))


def _that_fit(
    group: Sequence[ReadyCase],
    base: ReadyCase,
    needed_bytes: Callable[[ReadyCase], int],
    free_bytes: int,
) -> list[list[ReadyCase]]:
    """Heats in the order of the group. A case that does not even fit beside the reference rides beside it all
    the same: there is no smaller heat."""
    needed = [needed_bytes(one) for one in group]
    if len(group) < 2 or sum(needed) <= free_bytes:
        return [list(group)] if group else []
    room = free_bytes - needed[group.index(base)]
    heats: list[list[ReadyCase]] = []
    left = 0
    for one, own in zip(group, needed, strict=True):
        if one is base:
            continue
        if not heats or own > left:
            heats.append([base])
            left = room
        heats[-1].append(one)
        left -= own
    return heats
