"""Which cases are launched once more, when all have had their launches.

Intervals over launches shrink with the number of launches; the steps of one launch are stopped by a rule of
their own. So the next launches go to the case whose interval is widest, together with the case that it is
compared with: both run in one block, because ratios are taken within blocks. Cases that share this reference
and are nearly as wide come along, which gives a launch of the reference several uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from timetrial.analysis.summary import Row

NEARLY = 0.5  # of the widest interval


def further_block(rows: Sequence[Row], target: float, left_s: float) -> list[str]:
    """Ids of the cases of one more block, which takes at most `left_s` by what their launches took so far;
    none where every half-width is below `target` (a fraction) or nothing fits."""
    known = {row.case.id: row for row in rows}
    widths = {row.case.id: width for row in rows if (width := _width(row, rows)) is not None}
    wide = sorted((one for one in widths if widths[one] > target), key=lambda one: -widths[one])
    for worst in wide:
        block = list(dict.fromkeys([worst, known[worst].reference or worst]))
        spent_s = sum(_cost_s(known[one]) for one in block)
        if spent_s > left_s:
            continue
        for other in wide:
            cost_s = _cost_s(known[other])
            is_near = widths[other] >= NEARLY * widths[worst]
            has_same_reference = known[other].reference == known[worst].reference
            if other not in block and is_near and has_same_reference and spent_s + cost_s <= left_s:
                block.append(other)
                spent_s += cost_s
        return block
    return []


def _width(row: Row, rows: Sequence[Row]) -> float | None:
    """Of the interval that a reader looks at: against the reference; of a reference that nothing is compared
    with, and of a case without one, its own."""
    if row.outcome != "ok" or row.step_time_ns is None:
        return None
    if row.ratio is not None:
        return row.ratio.half_width
    if any(other.reference == row.case.id and other.ratio is not None for other in rows):
        return None
    return row.step_time_ns.half_width


def _cost_s(row: Row) -> float:
    return mean(one.record.duration_s for one in row.launches if one.record.purpose == "speed")
