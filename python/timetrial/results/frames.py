"""Results as pandas tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.analysis.phases import Phases
from timetrial.analysis.step_times import PERCENTILES, StepTimes, step_times_of
from timetrial.errors import InputError, Unavailable, nearest
from timetrial.observing.disturbances import is_disturbed
from timetrial.records.model import TIMED, LaunchRecord

if TYPE_CHECKING:
    import pandas as pd

    from timetrial.analysis.summary import Launch
    from timetrial.results.results import PandasKind, Results

KINDS = ("cases", "launches", "steps", "samples")


def to_pandas(results: Results, kind: PandasKind) -> pd.DataFrame:
    """One line per case, launch, step or look; axes are columns of their own."""
    if kind not in KINDS:
        raise InputError(f"There is no table '{kind}'.{nearest(kind, KINDS)}")
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise Unavailable("to_pandas() needs pandas: pip install 'timetrial[report]'") from None
    axes = {row.case.id: row.case.axes for row in results.rows}
    if kind == "steps":
        return _steps_frame(results, axes)
    if kind == "samples":
        return _samples_frame(results, axes)
    if kind == "cases":
        lines = [_case_line(case) for case in results.to_json()["cases"]]
    else:
        lines = _launch_lines(results, axes)
    frame: pd.DataFrame = pd.DataFrame(lines)
    return frame


def _case_line(case: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"case": case["id"], **case["axes"]}
    for key in (
        "reference",
        "outcome",
        "samples_per_s",
        "percent_of_peak",
        "peak_memory_bytes",
        "resident_peak_bytes",
        "on_paper_bytes",
        "cpus_used",
        "useful_steps",
        "computed_steps",
        "padded_steps",
        "mean_over_median",
        "import_s",
        "build_s",
        "first_step_s",
        "to_steady_s",
        "before_steady_s",
        "cold_build_s",
        "cold_first_step_s",
        "accuracy",
        "stop_reason",
        "steady",
    ):
        line[key] = case[key]
    line["launches_asked"], line["launches_ok"] = case["launches"]["asked"], case["launches"]["ok"]
    for key in ("step_time_ns", "median_step_ns", "ratio", "useful_steps_per_s"):
        line[key] = case[key]["estimate"]
        line[f"{key}_low"], line[f"{key}_high"] = case[key]["low"], case[key]["high"]
    for key, value in case["steps"].items():
        if isinstance(value, dict):
            line[key], line[f"{key}_low"], line[f"{key}_high"] = (
                value["estimate"],
                value["low"],
                value["high"],
            )
        else:
            line[{"n": "steps", "n_effective": "steps_effective"}.get(key, key)] = value
    for key in ("low", "high"):
        line[f"accuracy_{key}"] = case["accuracy_interval"][key]
    line["parity"] = case["parity"]["status"]
    return line


def _launch_lines(results: Results, axes: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    known = {launch.folder: launch for row in results.rows for launch in row.launches}
    lines = []
    for files in results.launches:
        record = files.record
        last = record.evaluations[-1] if record.evaluations else None
        launch = known.get(str(files.folder))
        phases = launch.phases if launch else Phases()
        lines.append(
            {
                "launch": record.id,
                "case": record.case,
                **axes.get(record.case, {}),
                "purpose": record.purpose,
                "block": record.block,
                "position": record.position,
                "seed": record.seed,
                "outcome": record.outcome,
                **_times(launch.times if launch else None),
                **_in_heat(launch),
                "stop_reason": record.stop_reason,
                "import_s": phases.import_s,
                "build_s": phases.build_s,
                "first_step_s": phases.first_step_s,
                "to_steady_s": phases.to_steady_s,
                "before_steady_s": phases.before_steady_s,
                "resets_s": phases.resets_s,
                "compile_cache": record.compile_cache.state if record.compile_cache else None,
                "after_import_bytes": record.memory.after_import,
                "after_build_bytes": record.memory.after_build,
                "after_first_step_bytes": record.memory.after_first_step,
                "peak_memory_bytes": record.memory.held,
                "resident_peak_bytes": record.memory.steady_peak,
                "cpus_used": record.witnesses.get("cpus_used"),
                "accuracy": last.accuracy if last else None,
                "disturbed": is_disturbed(record),
                "duration_s": record.duration_s,
                "started_at": record.started_at,
            }
        )
    return lines


def _in_heat(launch: Launch | None) -> dict[str, Any]:
    """Which heat it was in, its turns, and its step time there."""
    turns = launch.record.turns if launch else []
    seen: dict[str, Any] = {
        "heat": launch.record.heat if launch else None,
        "turns": len(turns),
        "turns_disturbed": sum(turn.disturbed for turn in turns),
    }
    if launch is not None and launch.level is not None:
        own = {"step_time_ns": launch.level.step_ns, "median_step_ns": launch.level.median_ns}
        seen |= own | {"median_step_ns_low": None, "median_step_ns_high": None}
    return seen


def _times(times: StepTimes | None) -> dict[str, Any]:
    """What the steady steps of one launch say; its intervals stand on the effective number of steps."""
    median, percentiles = (times.median, times.percentiles) if times else (None, {})
    return {
        "step_time_ns": times.wall_per_step_ns if times else None,
        "median_step_ns": median.estimate if median else None,
        "median_step_ns_low": median.low if median else None,
        "median_step_ns_high": median.high if median else None,
        "mean_ns": times.mean_ns if times else None,
        **{
            f"p{percent}_ns": percentiles[percent].estimate if percent in percentiles else None
            for percent in PERCENTILES
        },
        "spread_within": times.spread if times else None,
        "spread_within_robust": times.robust_spread if times else None,
        "outliers_mild": times.outliers.mild if times else None,
        "outliers_severe": times.outliers.severe if times else None,
        "steps": median.n if median else 0,
        "steps_effective": median.n_effective if median else None,
        "steady": times.steady.label if times and times.steady else None,
    }


def _steps_frame(results: Results, axes: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Every step, warm-up included; `counts` marks those that the step time comes from. None is dropped."""
    import pandas as pd

    frames = []
    for files in results.launches:
        steps = files.steps()
        times = step_times_of(steps, files.record.purpose) if files.record.purpose in TIMED else None
        frame = pd.DataFrame(
            {
                "step": range(len(steps)),
                "kind": steps.kind,
                "segment": steps.segment,
                "first_in_segment": steps.first_in_segment,
                "first_in_pass": steps.first_in_pass,
                "counts": times.counting if times else np.zeros(len(steps), np.bool_),
                "duration_ns": steps.duration_ns,
                "end_ns": steps.end_ns,
                "loss": steps.loss,
            }
        )
        frames.append(_with_launch(frame, files.record, axes))
    together: pd.DataFrame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return together


def _samples_frame(results: Results, axes: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Every look of the supervisor."""
    import pandas as pd

    frames = []
    for files in results.launches:
        samples = files.samples()
        if samples is not None:
            alive = {
                name: f"{name}_alive" for name in ("threads", "processes")
            }  # `threads` is what was asked
            frame = pd.DataFrame(samples.columns).rename(columns=alive)
            frames.append(_with_launch(frame, files.record, axes))
    together: pd.DataFrame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return together


def _with_launch(frame: pd.DataFrame, record: LaunchRecord, axes: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """In front, the columns that say of which launch it is."""
    import pandas as pd

    first = {"launch": record.id, "case": record.case, **axes.get(record.case, {})}
    first |= {"purpose": record.purpose, "block": record.block, "seed": record.seed}
    for position, (name, value) in enumerate(first.items()):
        frame.insert(position, name, pd.Series([value] * len(frame), dtype=object if value is None else None))
    return frame
