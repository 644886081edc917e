"""What a table of heats tells apart on this machine: the first look, and rows whose difference is known."""

from __future__ import annotations

import tempfile
import time
from statistics import median

from figures import Figure

import timetrial as tt

TABLES = 30
UNITS = (900, 900, 927)  # of null's work, about a millisecond: twice the same, and 3 % more
MEDIAN_WIDTH, LARGEST_WIDTH, MINUTES = 3.0, 6.0, 3.5
FALSE, FOUND = 1.0, 90.0  # percent of tables


def heats_figures() -> list[Figure]:
    """The first look, then TABLES tables of null."""
    return [*_first_look(), *_known_differences()]


def _first_look() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        rows = tt.run("first-look", results=folder, quiet=True).rows
        minutes = (time.monotonic() - began) / 60
    widths = [100 * width for row in rows if row.ratio and (width := row.ratio.half_width) is not None]
    if not widths:
        return [Figure("first-look: half width of a ratio", f"<= {MEDIAN_WIDTH} %", "no ratio", False)]
    return [
        Figure.at_most("first-look", MINUTES, minutes, "min"),
        Figure.at_most("first-look: median half width of a ratio", MEDIAN_WIDTH, median(widths), "%"),
        Figure.at_most("first-look: largest half width of a ratio", LARGEST_WIDTH, max(widths), "%"),
    ]


def _known_differences() -> list[Figure]:
    false = found = 0
    for seed in range(1, TABLES + 1):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"null.work_units": list(UNITS), "threads": 1}
            same, twin, more = tt.run(
                network="mlp", backend="null", seed=seed, results=folder, quiet=True, **settings
            ).rows
        letters = [set(row.alike or "") for row in (same, twin, more)]
        false += not letters[0] & letters[1]
        found += not letters[0] & letters[2]
    return [
        Figure.at_most(f"equal rows told apart, {TABLES} tables", FALSE, 100 * false / TABLES, "%"),
        Figure.at_least(f"3 % more work told apart, {TABLES} tables", FOUND, 100 * found / TABLES, "%", 0),
    ]
