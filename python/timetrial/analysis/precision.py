"""How finely a table tells its rows apart: what `effort` promises, and what was reached."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from timetrial.cautions import Caution

if TYPE_CHECKING:
    from timetrial.analysis.summary import Row


def median_half_width(rows: Sequence[Row]) -> float | None:
    """Of the ratios, as a fraction; where nothing is compared, of the step times. None: neither has an
    interval."""
    fine = [row for row in rows if row.outcome == "ok"]
    ratios = [row.ratio.half_width for row in fine if row.ratio is not None]
    steps = [row.step_time_ns.half_width for row in fine if row.step_time_ns is not None]
    known = [width for width in (ratios or steps) if width is not None]
    return median(known) if known else None


def too_wide(rows: Sequence[Row], asked: float | None) -> list[str]:
    """A warning where the half width asked for was not reached."""
    width = median_half_width(rows)
    if asked is None or width is None or width <= asked:
        return []
    what = "ratios" if any(row.ratio for row in rows) else "step times"
    return [
        Caution.TOO_WIDE.words(
            what=what,
            width=f"{100 * width:.3g}",
            asked=f"{100 * asked:.2g}",
            cure=f"launches={2 * max(row.ok for row in rows)}",
        )
    ]
