"""What a table of heats tells apart on this machine: the first look, eight stacks in 32 cases, and rows whose
difference is known; and how long a race takes."""

from __future__ import annotations

import tempfile
import time
from statistics import median

from figures import Figure

import timetrial as tt
from timetrial.analysis.summary import Row

TABLES = 30
UNITS = (900, 900, 927)  # of null's work, about a millisecond: twice the same, and 3 % more
MEDIAN_WIDTH, LARGEST_WIDTH, MINUTES = 3.0, 6.0, 3.5
MINUTES_OF_32, PLAIN_DIFFERENCE = 8.0, 1.1
RACED_BATCH, RACE_SECONDS = 220, 30
FALSE, FOUND = 1.0, 90.0  # percent of tables


def heats_figures() -> list[Figure]:
    """The first look, eight stacks, a race, then TABLES tables of null."""
    return [*_first_look(), *_eight_stacks(), _race(), *_known_differences()]


def _measured(name: str) -> tuple[list[Row], float]:
    """An experiment that is shipped, and how many minutes it took."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        rows = list(tt.run(name, results=folder, quiet=True).rows)
        return rows, (time.monotonic() - began) / 60


def _first_look() -> list[Figure]:
    rows, minutes = _measured("first-look")
    widths = [100 * width for row in rows if row.ratio and (width := row.ratio.half_width) is not None]
    if not widths:
        return [Figure("first-look: half width of a ratio", f"<= {MEDIAN_WIDTH} %", "no ratio", False)]
    return [
        Figure.at_most("first-look", MINUTES, minutes, "min"),
        Figure.at_most("first-look: median half width of a ratio", MEDIAN_WIDTH, median(widths), "%"),
        Figure.at_most("first-look: largest half width of a ratio", LARGEST_WIDTH, max(widths), "%"),
    ]


def _eight_stacks() -> list[Figure]:
    """With TensorFlow and JAX installed; the proofs compile anew."""
    rows, minutes = _measured("eight-stacks")
    failed = sum(row.outcome != "ok" for row in rows)
    if failed:
        return [Figure("eight-stacks", "32 cases", f"{failed} of {len(rows)} not ok", False)]
    ratios = [row.ratio for row in rows if row.ratio]
    plain = [one for one in ratios if max(one.estimate, 1 / one.estimate) >= PLAIN_DIFFERENCE]
    undecided = sum(one.low is None or one.high is None or one.low <= 1 <= one.high for one in plain)
    return [
        Figure.at_most(f"eight-stacks, {len(ratios)} ratios", MINUTES_OF_32, minutes, "min"),
        Figure.at_most("eight-stacks: undecided though 10 % apart", 0, undecided, f"of {len(plain)}", 0),
    ]


def _race() -> Figure:
    """With its proofs, to its first verdict; of some 20 ms a step on one core of 2026."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        sides = {"network": "lenet5", "batch_size": RACED_BATCH, "threads": 1}
        race = tt.race("eigen", "cblas", results=folder, confirm=False, quiet=True, **sides)
        seconds = time.monotonic() - began
        level = race.level(race.cases[0].id)
        step = "no step time" if level is None else f"steps of {level.estimate / 1e6:.0f} ms"
    return Figure.at_most(f"a race of {step}, {len(race.pairs)} pairs", RACE_SECONDS, seconds, "s", 0)


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
