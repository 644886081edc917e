"""Profiles: the layers of an experiment's profile launches, to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.analysis.profile import LayerRow, Machine, Quartiles, StepProfile, profile_of
from timetrial.analysis.step_times import step_times_of
from timetrial.analysis.steps import cpu_time_per_step_ns
from timetrial.analysis.summary import Row, threads_of
from timetrial.errors import Unavailable
from timetrial.records import store
from timetrial.records.model import SCHEMA_VERSION, CaseRecord, ExperimentRecord, LaunchRecord
from timetrial.results.results import LaunchFiles, Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from timetrial.report.profile import ProfileTable


@dataclass(frozen=True)
class CaseProfile:
    """A case of `timetrial profile`: its row, and its profile where the profile launch was ok."""

    row: Row  # as in the results of a run
    step: StepProfile | None = None  # None: the profile launch was not ok
    launch: LaunchFiles | None = None  # None: there was none

    @property
    def proven(self) -> bool:
        """Whether a proof launch showed that this backend computes this network."""
        return self.row.parity is not None and self.row.parity.status == "passed"


class Profile:
    """Where a step's time goes, per case. Read from records; nothing here measures.

    `cases` has one entry per case of the experiment, `sel()` narrows the view.
    """

    def __init__(self, results: Results):
        self._results = results

    @property
    def path(self) -> Path:
        """The folder of the records."""
        return self._results.path

    @property
    def experiment(self) -> ExperimentRecord:
        """What was asked, and where it ran."""
        return self._results.experiment

    @cached_property
    def cases(self) -> list[CaseProfile]:
        """In the experiment's order."""
        launches = {one.record.case: one for one in self._results.launches if one.record.purpose == "profile"}
        return [self._case(row, launches.get(row.case.id)) for row in self._results.rows]

    @property
    def warnings(self) -> list[str]:
        """What concerns the whole experiment."""
        return self._results.warnings

    @property
    def labels(self) -> list[str]:
        """What tells the cases apart, one per case: the backend, and every axis in which they differ."""
        from timetrial.figures.plots_data import case_labels

        return case_labels([case.row for case in self.cases])

    def sel(self, **axes: Any) -> Profile:
        """The cases with these values of axes or settings; a list takes any of its values."""
        return Profile(self._results.sel(**axes))

    def to_json(self) -> dict[str, Any]:
        """The JSON of `timetrial profile --json`: plain dicts, lists, numbers, words and None."""
        return {
            "schema_version": SCHEMA_VERSION,
            "experiment": self.experiment.name,
            "cases": [_case_json(case) for case in self.cases],
        }

    def to_pandas(self) -> pd.DataFrame:
        """One line per case, layer and direction; axes are columns of their own."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise Unavailable("to_pandas() needs pandas: pip install 'timetrial[report]'") from None
        frame: pd.DataFrame = pd.DataFrame(
            [
                {"case": case["id"], "label": label, **case["axes"], **_flat(layer)}
                for case, label in zip(self.to_json()["cases"], self.labels, strict=True)
                for layer in case["layers"]
            ]
        )
        return frame

    def plot(self) -> Figure:
        """A stacked bar per case (needs matplotlib)."""
        from timetrial.figures.plots_profile import profile_figure

        return profile_figure(self)

    def roofline(self) -> Figure:
        """Every layer and direction against the measured peak and the measured bandwidth of memory (needs
        matplotlib)."""
        from timetrial.figures.plots_roofline import roofline_figure

        return roofline_figure(self)

    def table(self) -> ProfileTable:
        """The tables of the command line, for rich."""
        from timetrial.report.profile import ProfileTable

        return ProfileTable(self)

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[CaseProfile]:
        return iter(self.cases)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)

    def _case(self, row: Row, launch: LaunchFiles | None) -> CaseProfile:
        case = CaseProfile(row, launch=launch)
        if launch is None or launch.record.outcome != "ok":
            return case
        plain = step_times_of(launch.steps(), "profile")
        step = profile_of(
            row.case,
            launch.record.profiled_layers,
            store.read_layer_times(launch.folder, launch.record),
            np.empty(0, np.int64) if plain is None else plain.durations_ns,
            cpu_time_per_step_ns(launch.record),
            self._machine(row.case, launch.record) if case.proven else Machine(),
        )
        return replace(case, step=step)

    def _machine(self, case: CaseRecord, launch: LaunchRecord) -> Machine:
        threads, measured = threads_of(case, launch), self.experiment
        return Machine(
            measured.peak_flops.get(threads),
            measured.memory_bandwidth.get(threads),
            measured.cache_bandwidth.get(threads),
        )


def _case_json(case: CaseProfile) -> dict[str, Any]:
    """Every case has every key and the same shape."""
    step, row, launch = case.step, case.row, case.launch
    return {
        "id": row.case.id,
        "axes": dict(row.case.axes),
        "outcome": row.outcome,
        "profiled_steps": step.steps if step else 0,
        "layers": [_layer_json(one) for one in step.rows] if step else [],
        "layers_time_ns": step.layers_ns if step else None,
        "profiled_step_time_ns": _quartiles(step.profiled_step_ns if step else None),
        "step_time_ns": _quartiles(step.plain_step_ns if step else None),
        "step_cpu_time_ns": step.plain_cpu_ns if step else None,
        "overhead": step.overhead if step else None,
        "percent_of_peak": (
            step.percent_of_peak(step.plain_step_ns.median) if step and step.plain_step_ns else None
        ),
        "peak_flops": step.peak_flops if step else None,
        "peak_step_time_ns": step.peak_ns if step else None,
        "memory_bandwidth": step.memory_bandwidth if step else None,
        "cache_bandwidth": step.cache_bandwidth if step else None,
        "parity": row.parity.status if row.parity else None,
        "settings": [setting.model_dump() for setting in row.settings],
        "facts": dict(launch.record.facts) if launch else {},
        "warnings": [
            *([row.reason] if row.reason else []),
            *row.warning_lines,
            *(step.warnings if step else []),
        ],
        "records": str(launch.folder) if launch else None,
    }


def _layer_json(row: LayerRow) -> dict[str, Any]:
    return {
        "node": row.node,
        "kind": row.kind,
        "direction": row.direction,
        "time_ns": _quartiles(row.time_ns),
        "share": row.share,
        "multiply_accumulates": row.multiply_accumulates,
        "flops_per_s": row.flops_per_s,
        "percent_of_peak": row.percent_of_peak,
        "bytes_per_s": row.bytes_per_s,
        "bytes": row.bytes,
        "operations_per_byte": row.operations_per_byte,
        "limit": row.limit,
        "percent_of_limit": row.percent_of_limit,
    }


def _quartiles(time: Quartiles | None) -> dict[str, float | None]:
    if time is None:
        return {"median": None, "low": None, "high": None}
    return {"median": time.median, "low": time.low, "high": time.high}


def _flat(layer: dict[str, Any]) -> dict[str, Any]:
    time = layer["time_ns"]
    named = {"time_ns": time["median"], "time_ns_low": time["low"], "time_ns_high": time["high"]}
    return {key: value for key, value in layer.items() if key != "time_ns"} | named
