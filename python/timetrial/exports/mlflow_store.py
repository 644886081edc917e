"""MLflow: a run for each case in the experiment of the same name, in a file store (no server), for
`MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri DIR`.

Parameters: what was asked of the case. Metrics: its numbers with `_low` and `_high` of their intervals, and
by step `training_loss/seed N`, `test_accuracy/seed N`, `step_time_ms/launch N` (at most 1,000 points, each a
median) or, of a race, `ratio_by_pair`. Tags: the record, timetrial's version, the outcome, whether it was
proven, the CPU. A case that failed is a run that FAILED, without a number.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.changes.findings import record_of
from timetrial.errors import InputError, Unavailable
from timetrial.exports.tracks import Track, began_s, tracks_of
from timetrial.results.results import Results

if TYPE_CHECKING:
    from timetrial.results.race import Race

RECORD_TAG = "timetrial.record"
_AT_ONCE = 1000  # metrics of a call
_LONGEST = 250  # characters of a parameter's value or a name
_ALLOW = "MLFLOW_ALLOW_FILE_STORE"  # MLflow 3.7 and later refuse a file store without it


def write_mlflow(found: Results | Race, folder: Path, *, force: bool) -> Path:
    """The store. InputError: it has this record already (`force`: that is replaced), or cannot be written.
    Unavailable: MLflow is not installed."""
    _library()
    record, tracks, began = record_of(found), tracks_of(found), int(1000 * began_s(found))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / ".trash").is_dir() and any(folder.iterdir()):
            raise InputError(
                f"'{folder}' holds something else than an MLflow store. Give a folder of its own."
            )
        with _client(folder) as client:
            experiment = client.get_experiment_by_name(record.name)
            place = experiment.experiment_id if experiment else client.create_experiment(record.name)
            there = client.search_runs([place], filter_string=f"tags.`{RECORD_TAG}` = '{record.id}'")
            if there and not force:
                raise InputError(f"'{folder}' has record {record.id} already. Write it anew: --force.")
            for run in there:
                client.delete_run(run.info.run_id)
            tags = {
                RECORD_TAG: record.id,
                "timetrial.version": record.timetrial_version,
                "timetrial.cpu": str(record.machine.get("cpu", "unknown")),
            }
            for track in tracks:
                _write(client, place, track, tags, began)
    except OSError as error:
        raise InputError(f"'{folder}' cannot be written: {error.strerror}. Choose another place.") from None
    return folder


def _library() -> tuple[Any, Any]:
    """The client of MLflow, and what it raises."""
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ModuleNotFoundError:
        raise Unavailable("mlflow needs MLflow: pip install 'timetrial[mlflow]'") from None
    return MlflowClient, MlflowException


@contextlib.contextmanager
def _client(folder: Path) -> Iterator[Any]:
    client_of, problem = _library()
    before = os.environ.get(_ALLOW)
    os.environ[_ALLOW] = "true"
    try:
        yield client_of(tracking_uri=folder.resolve().as_uri())
    except problem as error:
        raise InputError(f"MLflow cannot write to '{folder}': {error}") from None
    finally:
        if before is None:
            del os.environ[_ALLOW]
        else:
            os.environ[_ALLOW] = before


def _write(client: Any, experiment: str, track: Track, tags: dict[str, str], began: int) -> None:
    from mlflow.entities import Metric, Param, RunTag

    run = client.create_run(experiment, start_time=began, run_name=track.name[:_LONGEST])
    own = {**tags, "timetrial.outcome": track.outcome, "timetrial.proven": str(track.proven)}
    client.log_batch(
        run.info.run_id,
        params=[Param(key, value[:_LONGEST]) for key, value in track.facts.items()],
        tags=[RunTag(key, value) for key, value in own.items()],
    )
    metrics = [Metric(name, value, began, 0) for name, value in track.numbers.items()]
    for series in track.series:
        pairs = zip(series.steps, series.values, strict=True)
        metrics += [Metric(series.name, value, began, step) for step, value in pairs]
    for first in range(0, len(metrics), _AT_ONCE):
        client.log_batch(run.info.run_id, metrics=metrics[first : first + _AT_ONCE])
    client.set_terminated(run.info.run_id, "FINISHED" if track.ok else "FAILED", end_time=began)
