"""What a step costs before it does any work: step time = overhead + work per sample x batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from timetrial.analysis.ratios import speed_of
from timetrial.analysis.summary import Row
from timetrial.errors import InputError
from timetrial.records.reference import facts_of

FEWEST_SIZES = 3  # two points always lie on a line
FEWEST_LAUNCHES = 3  # of each size, for an interval


@dataclass(frozen=True)
class Overhead:
    """The line through the step times of one contender over batch sizes, neither part below zero.

    `worst`: the largest relative distance of a measured time from the line. Where it is large, time does not
    grow in a straight line (caches, other kernels for other sizes) and the two numbers say little.
    """

    axes: dict[str, object]  # of the contender, without the batch size
    batch_sizes: tuple[int, ...]
    times_ns: tuple[float, ...]
    overhead_ns: float
    per_sample_ns: float
    worst: float
    interval_ns: tuple[float, float] | None = None  # 95 % of `overhead_ns`, over launches; None: too few

    def share(self, batch_size: int) -> float:
        """Of a step with so many samples that is overhead, 0 to 1."""
        whole = self.overhead_ns + self.per_sample_ns * batch_size
        return self.overhead_ns / whole if whole > 0 else 0.0


def fit_overhead(batch_sizes: Sequence[int], times_ns: Sequence[float]) -> tuple[float, float, float]:
    """(overhead_ns, per_sample_ns, worst): least squares of relative deviations, so that the short steps
    count as much as the long ones; non-negative (Lawson and Hanson's NNLS)."""
    if len(set(batch_sizes)) < FEWEST_SIZES:
        raise InputError(
            f"{len(set(batch_sizes))} batch sizes: expected at least {FEWEST_SIZES}, "
            "such as batch_size=16,64,256"
        )
    sizes, times = np.asarray(batch_sizes, np.float64), np.asarray(times_ns, np.float64)
    (overhead, per_sample), _ = optimize.nnls(
        np.column_stack([1.0 / times, sizes / times]), np.ones(len(times))
    )
    worst = float(np.abs((overhead + per_sample * sizes) / times - 1).max())
    return float(overhead), float(per_sample), worst


def _interval(group: Sequence[Row], overhead_ns: float) -> tuple[float, float] | None:
    """A line through the first launch of each size, one through the second, and so on: Student's t over what
    they say. The estimate is below zero never, and so is no end of the interval."""
    launches = [
        [step_ns for one in speed_of(row.launches) if one.counts and (step_ns := one.step_time_ns)]
        for row in group
    ]
    count = min(map(len, launches))
    if count < FEWEST_LAUNCHES:
        return None
    sizes = [row.case.batch_size or 0 for row in group]
    seen = [fit_overhead(sizes, [own[number] for own in launches])[0] for number in range(count)]
    half = float(stats.t.ppf(0.975, count - 1)) * float(np.std(seen, ddof=1)) / count**0.5
    return max(0.0, overhead_ns - half), overhead_ns + half


def overheads(rows: Sequence[Row]) -> list[Overhead]:
    """One line per contender that has times for enough batch sizes, in the order of the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.outcome == "ok" and row.step_time_ns is not None and row.case.batch_size is not None:
            others = {key: value for key, value in facts_of(row.case).items() if key != "batch_size"}
            groups.setdefault(repr(sorted(others.items(), key=str)), []).append(row)
    found = []
    for group in groups.values():
        sizes = tuple(row.case.batch_size or 0 for row in group)
        if len(set(sizes)) < FEWEST_SIZES:
            continue
        times = tuple(row.step_time_ns.estimate for row in group if row.step_time_ns is not None)
        axes = {key: value for key, value in group[0].case.axes.items() if key != "batch_size"}
        fitted = fit_overhead(sizes, times)
        found.append(Overhead(axes, sizes, times, *fitted, _interval(group, fitted[0])))
    if not found:
        raise InputError(
            f"No contender has times for {FEWEST_SIZES} batch sizes: run it with batch_size=16,64,256"
        )
    return found
