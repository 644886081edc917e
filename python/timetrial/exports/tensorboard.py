"""TensorBoard: an event file for each case, DIR/<record>/<case>/, for `tensorboard --logdir DIR`.

Scalars: `training_loss/seed N` by step and `test_accuracy/seed N` by evaluation of each learning launch,
`step_time_ms/launch N` along the steady steps of each speed launch (at most 1,000 points, each a median),
`ratio_by_pair` of a race. In the tab HPARAMS each case with what was asked of it; its numbers are scalars of
step 0. A case that failed has no number, and its session ends with FAILURE.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.changes.findings import record_of
from timetrial.errors import InputError, Unavailable
from timetrial.exports.tracks import Track, began_s, tracks_of
from timetrial.results.results import Results

if TYPE_CHECKING:
    from timetrial.results.race import Race

_LONGEST = 100  # characters of a folder's name


def write_tensorboard(found: Results | Race, folder: Path, *, force: bool) -> Path:
    """The folder of the record under `folder`. InputError: it exists, or cannot be written. Unavailable:
    TensorBoard is not installed."""
    _library()
    target = folder / record_of(found).id
    if target.exists() and not force:
        raise InputError(f"'{target}' exists. Choose another place, or write over it: --force.")
    tracks, began = tracks_of(found), began_s(found)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as place:
            for number, track in enumerate(tracks):
                _write(Path(place) / "new" / _folder_name(track, number), track, began)
            if target.exists():
                shutil.move(target, Path(place) / "old")
            shutil.move(Path(place) / "new", target)
    except OSError as error:
        raise InputError(f"'{target}' cannot be written: {error.strerror}. Choose another place.") from None
    return target


def _library() -> tuple[Any, Any, Any, Any]:
    """What writes event files."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer.event_file_writer import (
            EventFileWriter,
        )
    except ModuleNotFoundError:
        raise Unavailable("tensorboard needs TensorBoard: pip install 'timetrial[tensorboard]'") from None
    return EventFileWriter, event_pb2.Event, summary_pb2.Summary, summary_v2


def _write(folder: Path, track: Track, began: float) -> None:
    writer_of, event_of, summary_of, hparams = _library()
    folder.mkdir(parents=True)
    with contextlib.closing(writer_of(str(folder))) as writer:
        facts = {**track.facts, "outcome": track.outcome, "proven": str(track.proven)}
        asked = hparams.hparams_pb(facts, trial_id=track.name, start_time_secs=began)
        writer.add_event(event_of(wall_time=began, step=0, summary=asked))
        for name, value in track.numbers.items():
            _add(writer, event_of, summary_of, name, 0, value, began)
        for series in track.series:
            for step, value in zip(series.steps, series.values, strict=True):
                _add(writer, event_of, summary_of, series.name, step, value, began)
        end = _session_end(summary_of, hparams, ok=track.ok, began=began)
        writer.add_event(event_of(wall_time=began, step=0, summary=end))


def _add(writer: Any, event: Any, summary: Any, tag: str, step: int, value: float, began: float) -> None:
    one = summary(value=[summary.Value(tag=tag, simple_value=value)])
    writer.add_event(event(wall_time=began, step=step, summary=one))


def _session_end(summary: Any, hparams: Any, *, ok: bool, began: float) -> Any:
    from tensorboard.plugins.hparams import metadata

    status = hparams.api_pb2.Status.Value("STATUS_SUCCESS" if ok else "STATUS_FAILURE")
    data = hparams.plugin_data_pb2.HParamsPluginData(
        session_end_info=hparams.plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=began)
    )
    about = metadata.create_summary_metadata(data)
    value = summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=about)
    return summary(value=[value])


def _folder_name(track: Track, number: int) -> str:
    """Short, of plain letters, and no two alike."""
    words = re.sub(r"[^\w.=@-]+", "_", track.name, flags=re.ASCII).strip("._")
    return f"{number:03d}_{words[:_LONGEST]}"
