"""What figures draw: plain arrays per case, taken from results or made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from timetrial.cases.case import NO_NETWORK
from timetrial.errors import InputError

if TYPE_CHECKING:
    from timetrial.analysis.steps import Steps
    from timetrial.analysis.summary import Launch, Row
    from timetrial.records.model import ExperimentRecord, SegmentKind
    from timetrial.results.results import LaunchFiles, Results
    from timetrial.statistics.intervals import Estimate

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
# Their time is not a step's: they stamp their parts, or come behind the launch's work, on other data.
NOT_DRAWN: tuple[SegmentKind, ...] = ("detailed", "judged")


@dataclass(frozen=True)
class LaunchSteps:
    """The steps of a speed launch in order. Not steady: warm-up, and the first step after each pause."""

    seconds: FloatArray  # duration of each step
    at_seconds: FloatArray  # end of each step, counted from the launch's first stamp
    steady: BoolArray
    step_seconds: float  # its step time: what the launch adds to the estimate; NaN: no step is steady


@dataclass(frozen=True)
class LearningRun:
    """A learning launch, at the step time of its row: learning itself is not timed, and several may learn at
    once. Evaluation is in no time."""

    seed: int
    step_seconds: float
    loss: FloatArray  # of each step
    evaluated_after: npt.NDArray[np.int64]  # steps
    accuracy: FloatArray  # 0 to 1, at these steps

    def seconds_at(self, steps: npt.NDArray[np.int64]) -> FloatArray:
        """Time after so many steps."""
        return steps.astype(np.float64) * self.step_seconds


@dataclass(frozen=True)
class CaseSteps:
    """A case's speed launches. `step_time`: that of the table, in ns."""

    label: str
    launches: list[LaunchSteps]
    step_time: Estimate | None = None


@dataclass(frozen=True)
class CaseLearning:
    """A case's learning launches, one per seed."""

    label: str
    runs: list[LearningRun]


def speed_cases(results: Results) -> list[CaseSteps]:
    """Cases with steady steps, in the order of the table. InputError if there are none."""
    cases = []
    for row, label in zip(results.rows, case_labels(results.rows), strict=True):
        known = {launch.folder: launch for launch in row.launches}
        own = _launches(results, row.case.id, "speed")
        launches = [_launch_steps(one, known[str(one.folder)]) for one in own if str(one.folder) in known]
        launches = [launch for launch in launches if launch.steady.any()]
        if launches:
            cases.append(CaseSteps(label, launches, row.step_time_ns))
    if not cases:
        raise InputError(
            "No case of these results has a steady step to draw. The table says why: results.table()."
        )
    return cases


def learning_cases(results: Results) -> list[CaseLearning]:
    """Cases with accuracies, in the order of the table; what others learned for one, each seed once, is at
    its own step time. InputError if there are none."""
    cases = []
    whole = results.whole
    for row, label in zip(results.rows, case_labels(results.rows), strict=True):
        by_seed: dict[int, LaunchFiles] = {}
        for case in (row.accuracy_from or row.case.id, *row.accuracy_with):
            for one in _launches(whole, case, "learning"):
                by_seed.setdefault(one.record.seed, one)
        runs = [_learning_run(one, row.step_time_ns) for _, one in sorted(by_seed.items())]
        runs = [run for run in runs if len(run.loss)]
        if runs:
            cases.append(CaseLearning(label, runs))
    if not cases:
        raise InputError(
            "These results have no learning launches to draw. They come with epochs: "
            "[train] epochs = 12 in the experiment, or epochs=12 on the command line."
        )
    return cases


def case_labels(rows: list[Row]) -> list[str]:
    """What tells the cases apart: the backend, and every axis in which they differ."""
    keys = list(dict.fromkeys(key for row in rows for key in row.case.axes))
    varying = [key for key in keys if len({repr(row.case.axes.get(key)) for row in rows}) > 1]
    labels = []
    for row in rows:
        others = [key for key in varying if key != "backend" and row.case.axes.get(key) is not None]
        labels.append(", ".join([row.case.who, *(f"{key} {row.case.axes[key]}" for key in others)]))
    return labels


def figure_title(experiment: ExperimentRecord, rows: list[Row], question: str) -> str:
    """The question that the figure answers; below it the name, and what all cases share of the workload."""
    shared = [experiment.name]
    for words in ({row.case.network for row in rows}, {row.case.dataset for row in rows}):
        shared += list(words - {NO_NETWORK}) if len(words) == 1 else []
    return f"{question}\n{' · '.join(dict.fromkeys(shared))}"


def _launches(results: Results, case: str, purpose: str) -> list[LaunchFiles]:
    """Launches of the case with this id that the table shows."""
    return [
        one
        for one in results.launches
        if one.record.case == case
        and one.record.purpose == purpose
        and one.record.outcome in ("ok", "mismatch")
    ]


def _launch_steps(files: LaunchFiles, launch: Launch) -> LaunchSteps:
    """`launch`: what the analysis found in these files."""
    steps = files.steps()
    whole = _drawn(steps)
    duration, ends = steps.duration_ns[whole].astype(np.float64), steps.end_ns[whole].astype(np.float64)
    start = ends[0] - duration[0] if len(ends) else 0.0
    times, step_ns = launch.times, launch.step_time_ns
    return LaunchSteps(
        seconds=duration * 1e-9,
        at_seconds=(ends - start) * 1e-9,
        steady=times.counting[whole] if times else np.zeros(len(duration), np.bool_),
        step_seconds=float("nan") if step_ns is None else 1e-9 * step_ns,
    )


def _learning_run(launch: LaunchFiles, step_time: Estimate | None) -> LearningRun:
    """A case that was not timed takes what its own steps took."""
    steps = launch.steps()
    whole = _drawn(steps)
    evaluations = launch.record.evaluations
    return LearningRun(
        seed=launch.record.seed,
        step_seconds=1e-9 * (step_time.estimate if step_time else float(np.median(steps.duration_ns[whole]))),
        loss=steps.loss[whole],
        evaluated_after=np.array([one.steps for one in evaluations], dtype=np.int64),
        accuracy=np.array([one.accuracy for one in evaluations], dtype=np.float64),
    )


def _drawn(steps: Steps) -> BoolArray:
    return ~steps.are(*NOT_DRAWN)
