"""Accuracy of rows, from their learning launches: each row's own, one figure for rows proven to compute the
same, and each row's answers against its reference's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from timetrial.cautions import Caution
from timetrial.control.arithmetic import REDUCED_NOTE
from timetrial.statistics.accuracy import (
    Right,
    accuracy_of,
    accuracy_of_shares,
    discordance,
    pooled,
    together,
)

if TYPE_CHECKING:
    from timetrial.analysis.summary import Launch, Row

SAME_TRAINING = ("network", "dataset", "batch_size", "buckets", "optimizer", "task")
SAME_NUMBERS = ("dtype", "semantics", "device")


def with_accuracy(rows: Sequence[Row]) -> list[Row]:
    """The rows, with what their learning launches say of accuracy."""
    right = {row.case.id: _right(row) for row in rows}
    found = {row.case.id: _with_own(row, right[row.case.id]) for row in rows}
    shared: dict[str, Mapping[int, Right]] = {}  # of rows that share a figure: the same for all of them
    for group in _proven_equal(rows, right):
        figure, alike = pooled([right[row.case.id] for row in group])
        kept = [row.case.id for row, is_alike in zip(group, alike, strict=True) if is_alike]
        shared |= dict.fromkeys(kept, together([right[one] for one in kept]))
        for row, is_alike in zip(group, alike, strict=True):
            own = found[row.case.id]
            if is_alike:
                found[row.case.id] = replace(own, accuracy=figure, accuracy_with=tuple(kept))
            else:
                words = Caution.OTHER_ANSWERS.words(rows=len(group))
                found[row.case.id] = replace(own, warnings=own.warnings + Counter([words]))
    teachers = {row.case.training: found[row.case.id] for row in rows if row.case.training and _learned(row)}
    return [_taught(_against(found[row.case.id], right, shared), teachers) for row in rows]


_Answers = dict[int, npt.NDArray[np.bool_]]  # by seed: of each test image, whether it was right


def _learned(row: Row) -> list[Launch]:
    return [
        one
        for one in row.launches
        if one.record.purpose == "learning" and one.record.outcome == "ok" and one.record.evaluations
    ]


def _right(row: Row) -> _Answers:
    """Empty where a launch has no answers: records older than these."""
    found = {one.record.seed: one.answers for one in _learned(row)}
    if any(answers is None for answers in found.values()):
        return {}
    return {seed: answers[0] == answers[1] for seed, answers in sorted(found.items()) if answers is not None}


def _with_own(row: Row, right: _Answers) -> Row:
    learned = _learned(row)
    if not learned:
        return row
    if right:
        own = accuracy_of(np.stack([*right.values()]))
    else:
        last = [one.record.evaluations[-1] for one in learned]
        own = accuracy_of_shares([one.accuracy for one in last], min(one.samples for one in last))
    return replace(row, accuracy=own, accuracy_own=own)


def _proven_equal(rows: Sequence[Row], right: dict[str, _Answers]) -> list[list[Row]]:
    """Rows that were proven to train the same network in the same way, with the same numbers."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        is_reduced = row.parity is not None and REDUCED_NOTE in row.parity.notes
        if right[row.case.id] and _is_proven(row) and not is_reduced:
            groups.setdefault(repr(_training(row, right[row.case.id])), []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def _is_proven(row: Row) -> bool:
    return row.outcome == "ok" and row.parity is not None and row.parity.status == "passed"


def _training(row: Row, right: _Answers) -> list[Any]:
    images = {len(one) for one in right.values()}
    return [
        *(getattr(row.case, key) for key in SAME_TRAINING),
        *(row.case.axes.get(key) for key in SAME_NUMBERS),
        images,
    ]


def _taught(row: Row, teachers: Mapping[str, Row]) -> Row:
    """With the accuracy of the row that learned in its place; only what is proven to compute the same."""
    teacher = teachers.get(row.case.training or "")
    if teacher is None or _learned(row) or not _is_proven(row):
        return row
    return replace(
        row,
        accuracy=teacher.accuracy,
        accuracy_with=teacher.accuracy_with,
        accuracy_from=teacher.case.id,
    )


def _against(row: Row, right: dict[str, _Answers], shared: Mapping[str, Mapping[int, Right]]) -> Row:
    """With the comparison of its answers with those of its reference, on the seeds and images of both; those
    who share its figure have learned for it."""
    own, reference = right[row.case.id], row.reference or ""
    base: Mapping[int, Right] = right.get(reference, {})
    if reference in shared and shared[reference] is not shared.get(row.case.id):
        base = shared[reference]
    seeds = sorted(own.keys() & base.keys())
    if (
        row.is_reference
        or not seeds
        or {len(own[seed]) for seed in seeds} != {len(base[seed]) for seed in seeds}
    ):
        return row
    both = [np.stack([answers[seed] for seed in seeds]) for answers in (own, base)]
    return replace(row, accuracy_against=discordance(*both))
