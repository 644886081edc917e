"""How long launches have to warm up: `warming.py RESULTS...`, folders of runs whose launches took turns.

By backend: steps of the warm-up after so many milliseconds of it, against the median step of the launch's
turns; and those of its first turn. What a quick launch warms up was chosen by this (docs/statistics.md).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import timetrial as tt
from timetrial.analysis.steps import Steps

WINDOWS_MS = (0, 100, 200, 300, 500)  # each to the next; the last to the end
FIRST_TURN = len(WINDOWS_MS)
SLOW_NS = 15_000_000


def drifts(steps: Steps) -> dict[int, float]:
    """In percent, for each window that has two steps at least; none where turns are single steps."""
    plain = ~steps.follows_break
    warm, turns = steps.are("warmup"), steps.are("turn") & plain
    if not turns.any():
        return {}
    typical = float(np.median(steps.duration_ns[turns]))
    after_ms = (steps.end_ns - steps.end_ns[warm][0]) / 1e6
    chosen = {
        window: warm & plain & (after_ms >= begin) & (after_ms < end)
        for window, (begin, end) in enumerate(zip(WINDOWS_MS, (*WINDOWS_MS[1:], np.inf), strict=True))
    }
    chosen[FIRST_TURN] = turns & (steps.segment == steps.segment[turns][0])
    return {
        window: 100 * float(np.log(np.median(steps.duration_ns[these]) / typical))
        for window, these in chosen.items()
        if these.sum() >= 2
    }


def main() -> None:
    """Prints the table."""
    if not sys.argv[1:]:
        sys.exit(__doc__)
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for folder in sys.argv[1:]:
        results = tt.Results(Path(folder))
        for row in results.all_rows:
            is_slow = row.step_time_ns is not None and row.step_time_ns.estimate > SLOW_NS
            for launch in results.launches_of(row):
                if len(launch.record.turns) < 2:
                    continue
                for window, drift in drifts(launch.steps()).items():
                    found[f"{row.case.backend}{', > 15 ms' if is_slow else ''}"][window].append(drift)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", *(f"from {begin} ms" for begin in WINDOWS_MS), "first turn"):
        table.add_column(column, justify="right")
    for name, windows in sorted(found.items()):
        cells = [
            f"{np.median(windows[one]):+.1f} % ({len(windows[one])})" if windows[one] else "-"
            for one in range(FIRST_TURN + 1)
        ]
        table.add_row(name, *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
