"""Results as pandas tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timetrial.analysis.noise import is_disturbed
from timetrial.analysis.phases import Phases
from timetrial.errors import InputError, Unavailable, nearest

if TYPE_CHECKING:
    import pandas as pd

    from timetrial.records.results import PandasKind, Results

KINDS = ("cases", "launches", "steps")


def to_pandas(results: Results, kind: PandasKind) -> pd.DataFrame:
    """One line per case, launch or step; axes are columns of their own."""
    if kind not in KINDS:
        raise InputError(f"There is no table '{kind}'.{nearest(kind, KINDS)}")
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise Unavailable("to_pandas() needs pandas: pip install 'timetrial[report]'") from None
    axes = {row.case.id: row.case.axes for row in results.rows}
    if kind == "steps":
        return _steps_frame(results, axes)
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
        "import_s",
        "build_s",
        "first_step_s",
        "cold_build_s",
        "cold_first_step_s",
        "accuracy",
        "stop_reason",
    ):
        line[key] = case[key]
    line["launches_asked"], line["launches_ok"] = case["launches"]["asked"], case["launches"]["ok"]
    for key in ("step_time_ns", "ratio"):
        line[key] = case[key]["estimate"]
        line[f"{key}_low"], line[f"{key}_high"] = case[key]["low"], case[key]["high"]
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
                "step_time_ns": launch.step_time_ns if launch else None,
                "import_s": phases.import_s,
                "build_s": phases.build_s,
                "first_step_s": phases.first_step_s,
                "compile_cache": record.compile_cache.state if record.compile_cache else None,
                "after_import_bytes": record.memory.after_import,
                "after_build_bytes": record.memory.after_build,
                "after_first_step_bytes": record.memory.after_first_step,
                "peak_memory_bytes": record.memory.steady_peak,
                "accuracy": last.accuracy if last else None,
                "disturbed": is_disturbed(record),
                "duration_s": record.duration_s,
                "started_at": record.started_at,
            }
        )
    return lines


def _steps_frame(results: Results, axes: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Every step, warm-up included and marked (`kind`); no step is dropped."""
    import pandas as pd

    frames = []
    for files in results.launches:
        steps = files.steps()
        frame = pd.DataFrame(
            {
                "step": range(len(steps)),
                "kind": steps.kind,
                "segment": steps.segment,
                "first_in_segment": steps.first_in_segment,
                "duration_ns": steps.duration_ns,
                "end_ns": steps.end_ns,
                "loss": steps.loss,
            }
        )
        first = {"launch": files.record.id, "case": files.record.case, **axes.get(files.record.case, {})}
        first |= {"purpose": files.record.purpose, "block": files.record.block, "seed": files.record.seed}
        for position, (name, value) in enumerate(first.items()):
            frame.insert(
                position, name, pd.Series([value] * len(frame), dtype=object if value is None else None)
            )
        frames.append(frame)
    together: pd.DataFrame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return together
