"""The folder of an experiment: written once, atomically; read with errors a person can act on.

results/<id>/experiment.json
results/<id>/proof/<case>/{record.json,stamps.bin,losses.bin}
results/<id>/launches/<nnn>/{record.json,stamps.bin,losses.bin}
results/<id>/launches/<nnn>/answers.npy          of launches that learn
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from pydantic_core import from_json

from timetrial import npy
from timetrial.errors import InputError
from timetrial.paths import user_path
from timetrial.records.files import explained, mark_of, read_regular, write_once
from timetrial.records.model import SCHEMA_VERSION, ExperimentRecord, FileMark, LaunchRecord, Model

RecordType = TypeVar("RecordType", bound=Model)

EXPERIMENT_FILE = "experiment.json"
LAST = "last"  # in place of an id
ROOT_FILES = (EXPERIMENT_FILE, "race.json")  # of a record's folder
RECORD_FILE = "record.json"
STAMPS_FILE = "stamps.bin"  # u64, little-endian: nanoseconds << 8 | boundary
LOSSES_FILE = "losses.bin"  # f64, little-endian: one per step
LAYERS_FILE = "layers.bin"  # u64, little-endian: nanoseconds, a row per profiled layer and direction

ANSWERS_FILE = "answers.npy"  # i16 (2, test images): predicted class after the last evaluation, true class
ID_BYTES = 6  # of a folder's name: no two among the records of a lifetime, whatever machines they come from
MOST_RECORD_BYTES = 256 << 20
MOST_SAMPLE_BYTES = 4 << 30  # a million steps take 16 MB


def check_writable(results: Path) -> None:
    """Raises InputError if no record could be kept under `results` (made if missing)."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        probe = results / f".{secrets.token_hex(8)}"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"Records cannot be kept in '{results}': {error.strerror}. "
            "Give a folder you may write to: --results FOLDER."
        ) from None


def new_folder(results: Path) -> Path:
    """A folder of its own for an experiment; its name is the experiment's id."""
    while True:
        folder = results / secrets.token_hex(ID_BYTES)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder


def write_experiment(folder: Path, record: ExperimentRecord) -> None:
    """experiment.json of a folder."""
    write_begun(folder / EXPERIMENT_FILE, record)


def write_begun(file: Path, record: Model) -> None:
    """One of ROOT_FILES, as the newest beside the others: a clock that was set back does not make an older
    record the last one."""
    write_once(file, to_bytes(record))
    others = [at for at, folder in _begun(file.parent.parent) if folder != file.parent]
    if others and max(others) >= file.stat().st_mtime_ns:
        with explained(file):
            os.utime(file, ns=(max(others) + 1, max(others) + 1))


def write_launch(folder: Path, record: LaunchRecord) -> None:
    """record.json of a launch: the last thing written, so a folder with one is complete."""
    write_once(folder / RECORD_FILE, to_bytes(record))


def read_experiment(folder: Path) -> ExperimentRecord:
    """experiment.json of a folder."""
    file = folder / EXPERIMENT_FILE
    if not file.is_file():
        raise InputError(_not_results(folder))
    return read_record(file, ExperimentRecord)


def read_launch(folder: Path) -> LaunchRecord:
    """record.json of a launch's folder. Where the files beside it are not those it was written with, its
    outcome is `damaged` and it has no steps. InputError: the record itself cannot be read."""
    record = read_record(folder / RECORD_FILE, LaunchRecord)
    words = _damage(folder, record)
    if words is None:
        return record
    return record.model_copy(
        update={
            "outcome": "damaged",
            "reason": words,
            "segments": [],
            "turns": [],
            "passes": None,
            "untrained": None,
            "evaluations": [],
            "profiled_steps": 0,
            "profiled_layers": [],
        }
    )


def _damage(folder: Path, record: LaunchRecord) -> str | None:
    """Which file disagrees with the record, and how."""
    for name, mark in record.files.items():
        try:
            data = read_regular(folder / name, MOST_SAMPLE_BYTES)
        except OSError as error:
            return f"'{folder / name}' cannot be read: {error.strerror}"
        if len(data) != mark.bytes:
            return f"'{folder / name}' has {len(data)} bytes; {mark.bytes} were written"
        if mark_of(data) != mark:
            return f"'{folder / name}' was changed after it was written"
    if not record.files and record.segments:  # older than the marks
        last = record.segments[-1]
        wanted = {STAMPS_FILE: last.first_stamp + last.stamps, LOSSES_FILE: last.first_loss + last.losses}
        for name, numbers in wanted.items():
            with contextlib.suppress(OSError):
                if (size := (folder / name).stat().st_size) != 8 * numbers:
                    return f"'{folder / name}' has {size} bytes; {8 * numbers} were written"
        if np.any(np.diff((read_stamps(folder) >> np.uint64(8)).astype(np.int64)) < 0):
            return f"'{folder / STAMPS_FILE}' is of a clock that goes backward: it was changed"
    return None


def launch_folders(folder: Path) -> list[Path]:
    """Folders of all finished launches: proofs first, then in the order they ran."""
    proofs = sorted(file.parent for file in folder.glob(f"proof/*/{RECORD_FILE}"))
    return proofs + sorted(file.parent for file in folder.glob(f"launches/*/{RECORD_FILE}"))


def copy_proofs(earlier: Sequence[Path], folder: Path, cases: Collection[str]) -> None:
    """Of these cases (content ids), those that an earlier folder has: a record is the last of its files."""
    for case in cases:
        place = folder / "proof" / case
        found = [one / "proof" / case for one in earlier if (one / "proof" / case / RECORD_FILE).is_file()]
        if not found or place.exists() or read_launch(found[0]).outcome != "ok":
            continue
        with explained(place):
            shutil.copytree(found[0], place, ignore=shutil.ignore_patterns(RECORD_FILE))
            shutil.copy2(found[0] / RECORD_FILE, place)


def read_stamps(folder: Path) -> npt.NDArray[np.uint64]:
    """stamps.bin; empty where a launch never stamped."""
    return _array(folder / STAMPS_FILE, "<u8").astype(np.uint64, copy=False)


def read_losses(folder: Path) -> npt.NDArray[np.float64]:
    """losses.bin; empty where a launch made no step."""
    return _array(folder / LOSSES_FILE, "<f8").astype(np.float64, copy=False)


def write_answers(folder: Path, answers: npt.NDArray[np.int32]) -> FileMark:
    """answers.npy of a learning launch; a later evaluation takes the place of an earlier one."""
    file = io.BytesIO()
    np.save(file, answers)
    with explained(folder):
        (folder / ANSWERS_FILE).write_bytes(file.getvalue())
    return mark_of(file.getvalue())


def read_answers(folder: Path) -> npt.NDArray[np.int32] | None:
    """answers.npy; None: a launch that evaluated nothing, or a record older than these files."""
    file = folder / ANSWERS_FILE
    if not file.is_file():
        return None
    try:
        answers: npt.NDArray[np.int32] = npy.load(file)
    except ValueError as error:
        raise InputError(f"'{file}' is damaged: {error}.") from None
    if answers.ndim != 2 or answers.shape[0] != 2:
        raise InputError(f"'{file}' is damaged: its shape is {answers.shape}, expected (2, images).")
    return answers


def read_layer_times(folder: Path, record: LaunchRecord) -> npt.NDArray[np.int64]:
    """layers.bin: nanoseconds by (profiled layer, profiled step)."""
    times = _array(folder / LAYERS_FILE, "<u8").astype(np.int64)
    shape = (len(record.profiled_layers), record.profiled_steps)
    if times.size != shape[0] * shape[1]:
        raise InputError(
            f"'{folder / LAYERS_FILE}' is damaged: {times.size} times, "
            f"expected {shape[1]} steps of {shape[0]} layers and directions."
        )
    return times.reshape(shape)


def find(path: str | Path, results: Path = Path("results")) -> Path:
    """The folder of a record: a path, or an id under `results`; the beginning of an id is enough. "last": the
    one that was begun last."""
    folder = user_path(path)
    if str(path) == LAST and not folder.exists():
        newest = next(iter(newest_first(results)), None)
        if newest is None:
            raise InputError(f"There are no records in '{results}': nothing was measured into it yet.")
        return newest
    if any((folder / name).is_file() for name in ROOT_FILES):
        return folder
    if folder.name in ROOT_FILES and folder.is_file():
        return folder.parent
    around = results if len(folder.parts) == 1 else folder.parent
    if not folder.exists() and around.is_dir():
        begun = sorted(one for one in around.iterdir() if one.name.startswith(folder.name) and one.is_dir())
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise InputError(f"'{path}' fits several records: {', '.join(one.name for one in begun)}.")
    raise InputError(_not_results(folder))


def newest_first(results: Path) -> list[Path]:
    """Folders of all records under `results`."""
    return [folder for _, folder in sorted(_begun(results), reverse=True)]


def _begun(results: Path) -> list[tuple[int, Path]]:
    """Each record under `results`, and when it was begun by the clock of the file system."""
    return [
        (file.stat().st_mtime_ns, file.parent) for name in ROOT_FILES for file in results.glob(f"*/{name}")
    ]


def _not_results(folder: Path) -> str:
    if not folder.exists():
        return f"There are no records at '{folder}'. Expected a folder such as results/7f3a."
    files = " or ".join(ROOT_FILES)
    return f"'{folder}' is not a record: it has no {files}. Expected a folder such as results/7f3a."


def to_bytes(record: Model) -> bytes:
    """The text of a record's file."""
    return (record.model_dump_json(indent=1) + "\n").encode()


def _array(file: Path, dtype: str) -> npt.NDArray[Any]:
    try:
        data = read_regular(file, MOST_SAMPLE_BYTES)
    except FileNotFoundError:
        return np.empty(0, dtype)
    except OSError as error:
        raise InputError(f"'{file}' cannot be read: {error.strerror}.") from None
    if len(data) % 8:
        raise InputError(f"'{file}' is damaged: {len(data)} bytes are no whole number of 8-byte words.")
    return np.frombuffer(data, dtype)


def read_record(file: Path, model: type[RecordType]) -> RecordType:
    """A record's file, whole. InputError: it is damaged, or newer than this timetrial."""
    try:
        document = from_json(read_regular(file, MOST_RECORD_BYTES), allow_inf_nan=False)
    except OSError as error:
        raise InputError(f"'{file}' cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(
            f"'{file}' is damaged (truncated?): {error}. The other launches of the record are whole."
        ) from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InputError(
            f"'{file}' has schema {version}; this timetrial reads up to {SCHEMA_VERSION}. "
            "Use a newer timetrial to read it."
        )
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"'{file}' is not a record of schema {SCHEMA_VERSION}: '{place}': {first['msg']}."
        ) from None
