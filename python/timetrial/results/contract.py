"""The JSON of `run`: a contract with whoever reads it.

Every case has every key and the same shape. Absent numbers are null; a reference has no ratio to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timetrial.analysis.distribution import Distribution
from timetrial.analysis.step_times import PERCENTILES
from timetrial.analysis.summary import Row
from timetrial.records.model import SCHEMA_VERSION
from timetrial.statistics.intervals import Estimate

if TYPE_CHECKING:
    from timetrial.results.results import Results


def to_json(results: Results) -> dict[str, Any]:
    """{"schema_version", "experiment", "cases": [...]} of plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "experiment": results.experiment.name,
        "cases": [_case(row) for row in results.rows],
    }


def _case(row: Row) -> dict[str, Any]:
    accuracy = row.accuracy
    return {
        "id": row.case.id,
        "reference": row.reference,
        "axes": dict(row.case.axes),
        "outcome": row.outcome,
        "outcomes": dict(row.outcomes),
        "launches": {"asked": row.asked, "ok": row.ok},
        "step_time_ns": _interval(row.step_time_ns),
        "median_step_ns": _interval(row.median_step_ns),
        "ratio": _interval(row.ratio),
        "alike": row.alike,
        "interval": _basis(row.ratio or row.step_time_ns),
        "samples_per_s": row.samples_per_s.estimate if row.samples_per_s else None,
        "samples_per_s_interval": _ends(row.samples_per_s),
        "useful_steps": row.sequences.steps.useful if row.sequences else None,
        "computed_steps": row.sequences.steps.computed if row.sequences else None,
        "padded_steps": row.sequences.steps.padded if row.sequences else None,
        "useful_steps_per_s": _interval(row.sequences.useful_per_s if row.sequences else None),
        "mean_over_median": row.mean_over_median,
        "percent_of_peak": row.percent_of_peak,
        "peak_memory_bytes": row.peak_memory_bytes,
        "resident_peak_bytes": row.resident_peak_bytes,
        "on_paper_bytes": row.case.on_paper_bytes,
        "cpus_used": row.cpus_used,
        **phases(row),
        "accuracy": accuracy.estimate if accuracy else None,
        "accuracy_interval": {
            "low": accuracy.low if accuracy else None,
            "high": accuracy.high if accuracy else None,
            "seeds": accuracy.n if accuracy else 0,
            "rows": row.accuracy_rows if accuracy else 0,
        },
        "accuracy_from": row.accuracy_from,
        "accuracy_own": _interval(row.accuracy_own),
        "accuracy_against_reference": vars(row.accuracy_against) if row.accuracy_against else None,
        "parity": _parity(row),
        "proof_from": row.proof_from,
        "proof_kept_from": row.proof_kept.kept_from.run
        if row.proof_kept and row.proof_kept.kept_from
        else None,
        "settings": [setting.model_dump() for setting in row.settings],
        "facts": row.facts,
        "stop_reason": row.stop_reason,
        "steady": row.steady,
        "steps": _steps(row.distribution),
        "warnings": [*([row.reason] if row.reason else []), *row.warning_lines],
        "records": [launch.folder for launch in row.launches],
    }


def _basis(estimate: Estimate | None) -> dict[str, Any]:
    """What the interval of the ratio, or else of the step time, stands on."""
    return {
        "method": estimate.method if estimate else None,
        "launches": estimate.n if estimate else 0,
        "degrees_of_freedom": estimate.df if estimate else None,
        "borrowed": estimate.borrowed if estimate else 0,
    }


def phases(row: Row) -> dict[str, float | None]:
    """What comes before the steady steps, in seconds."""
    return {
        "import_s": row.phases.import_s,
        "build_s": row.phases.build_s,
        "first_step_s": row.phases.first_step_s,
        "to_steady_s": row.phases.to_steady_s,
        "before_steady_s": row.phases.before_steady_s,
        "cold_build_s": row.cold.build_s,
        "cold_first_step_s": row.cold.first_step_s,
    }


def _steps(found: Distribution | None) -> dict[str, Any]:
    """How steady steps scatter: within a launch, and from launch to launch."""
    percentiles = found.percentiles_ns if found else {}
    return {
        "n": found.steps if found else 0,
        "n_effective": found.effective if found else None,
        "mean_ns": _interval(found.mean_ns if found else None),
        **{f"p{percent}_ns": _interval(percentiles.get(percent)) for percent in PERCENTILES},
        "spread_within": found.spread_within if found else None,
        "spread_within_robust": found.spread_within_robust if found else None,
        "outliers_mild": found.outliers_mild if found else None,
        "outliers_severe": found.outliers_severe if found else None,
        "spread_between": found.spread_between if found else None,
        "levels_apart": found.levels_apart if found else None,
    }


def _ends(estimate: Estimate | None) -> dict[str, float | None]:
    return {"low": estimate.low if estimate else None, "high": estimate.high if estimate else None}


def _interval(estimate: Estimate | None) -> dict[str, float | None]:
    if estimate is None:
        return {"estimate": None, "low": None, "high": None}
    return {"estimate": estimate.estimate, "low": estimate.low, "high": estimate.high}


def _parity(row: Row) -> dict[str, Any]:
    if row.parity is None:
        return {"status": "unproven", "max_error": None, "tensor": None}
    return {"status": row.parity.status, "max_error": row.parity.max_error, "tensor": row.parity.tensor}
