"""How well an experiment repeats: `repeats.py RESULTS RESULTS...`, folders of runs of it on one machine.

For each pair of runs and all rows: by how much the printed step time, the median step of the same time, and
the ratios differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import timetrial as tt
from timetrial.analysis.summary import Row
from timetrial.statistics.intervals import Estimate

SHOWN: dict[str, Callable[[Row], Estimate | None]] = {
    "step time": lambda row: row.step_time_ns,
    "median step": lambda row: row.median_step_ns,
    "ratio": lambda row: row.ratio,
}


def differences(
    first: tt.Results, second: tt.Results, shown: Callable[[Row], Estimate | None]
) -> list[float]:
    """In percent, of the rows that both have."""
    others = {row.case.id: shown(row) for row in second.all_rows}
    pairs = [(shown(row), others.get(row.case.id)) for row in first.all_rows]
    return [
        100 * abs(float(np.log(one.estimate / other.estimate)))
        for one, other in pairs
        if one is not None and other is not None
    ]


def main() -> None:
    """Prints the table."""
    runs = [tt.Results(Path(folder)) for folder in sys.argv[1:]]
    if len(runs) < 2:
        sys.exit(__doc__)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("runs of", "", "rows", *(f"{name}: median, largest" for name in SHOWN)):
        table.add_column(column)
    for first, second in combinations(runs, 2):
        found = [differences(first, second, shown) for shown in SHOWN.values()]
        cells = [f"{np.median(one):.1f} %, {max(one):.1f} %" if one else "-" for one in found]
        begun = [one.experiment.created_at[:16].replace("T", " ") for one in (first, second)]
        table.add_row(*begun, str(len(found[0])), *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
