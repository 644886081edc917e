"""Files of exports: checked before anything is written, then written whole."""

from __future__ import annotations

import io
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.errors import InputError, Unavailable
from timetrial.exports import bencher, github_action, google_benchmark
from timetrial.exports.dictionary import dictionary
from timetrial.exports.formats import FOLDERS, HISTORY, STORES, TRACE, check_format
from timetrial.exports.lines import sheet_of
from timetrial.exports.tables import tables_of, was_looked_at
from timetrial.exports.trace import trace_of
from timetrial.paths import user_path
from timetrial.records.store import ROOT_FILES
from timetrial.results.results import Results

if TYPE_CHECKING:
    import pandas as pd

    from timetrial.results.race import Race

_DOCUMENTS = {
    "google-benchmark": google_benchmark.document,
    "bencher": bencher.document,
    "github-action": github_action.document,
}
_TABLES = {"run": ("cases", "launches", "steps"), "race": ("pairs", "rounds")}


def export(
    found: Results | Race, format: str, path: str | Path | None = None, *, force: bool = False
) -> Path | str:
    """Writes a run, its selected cases only, or a race: csv and parquet into the folder `path`, other formats
    into the file `path`, which is returned; without a path the text of a JSON format is. `force`: over files
    that exist; a history is appended to.

    InputError, before anything is written: no such format, csv or parquet without a path, a path that is
    taken or cannot be written to, or a metric that the format has no place for. Unavailable: pandas or
    pyarrow is not installed.
    """
    check_format(format)
    record = found.path if isinstance(found, Results) else found.folder
    if format == HISTORY:
        return _appended(found, path, record)
    if format in STORES:
        return _stored(found, format, path, record, force=force)
    if format not in FOLDERS:
        target = None if path is None else user_path(path)
        file = None if target is None else _file(target, record, force)
        document = trace_of(found) if format == TRACE else _DOCUMENTS[format](sheet_of(found))
        text = json.dumps(document, indent=None if format == TRACE else 1, allow_nan=False) + "\n"
        return text if target is None or file is None else _written({file: text.encode()}, target)
    if path is None:
        raise InputError(f"{format} is several files: give the folder that they go into, -o FOLDER.")
    folder = user_path(path)
    wanted = _TABLES["run" if isinstance(found, Results) else "race"]
    names = [f"{table}.{format}" for table in (*wanted, *(["samples"] if was_looked_at(found) else []))]
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file; {format} is several: give a folder.")
    targets = [_file(folder / name, record, force) for name in (*names, "dictionary.csv")]
    encode = _parquet() if format == "parquet" else _csv
    tables = tables_of(found)
    files = [encode(table) for table in tables.values()]
    files.append(_dictionary(tables))
    return _written(dict(zip(targets, files, strict=True)), folder)


def _appended(found: Results | Race, path: str | Path | None, record: Path) -> Path | str:
    from timetrial.changes.entry import entries_of
    from timetrial.changes.history import append

    entries = entries_of(found)
    if path is None:
        return "".join(f"{one.model_dump_json()}\n" for one in entries)
    target = user_path(path)
    _file(target, record, force=True)
    return append(target, entries)


def _stored(
    found: Results | Race, format: str, path: str | Path | None, record: Path, *, force: bool
) -> Path:
    if path is None:
        raise InputError(f"{format} is a folder of that tool: give it, -o FOLDER.")
    folder = user_path(path)
    _outside_of_records(folder, record)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file; {format} writes into a folder.")
    if format == "mlflow":
        from timetrial.exports.mlflow_store import write_mlflow

        return write_mlflow(found, folder, force=force)
    from timetrial.exports.tensorboard import write_tensorboard

    return write_tensorboard(found, folder, force=force)


def _outside_of_records(path: Path, record: Path) -> Path:
    """Where a path leads. InputError: into a record."""
    # Through links: what would be lost is what they lead to.
    target = Path(os.path.realpath(path))
    around = Path(os.path.realpath(record)).parent
    for folder in (target, *target.parents):
        if folder.parent == around and any((folder / name).is_file() for name in ROOT_FILES):
            raise InputError(f"'{path}' lies in a record, which never changes. Choose another place.")
    return target


def _file(path: Path, record: Path, force: bool) -> Path:
    """A path that may be written. InputError: it may not."""
    target = _outside_of_records(path, record)
    if target.is_dir():
        raise InputError(f"'{path}' is a folder: give a file.")
    if target.exists() and not target.is_file():
        raise InputError(f"'{path}' is no regular file. Choose another place.")
    if target.exists() and not force:
        raise InputError(f"'{path}' exists. Choose another place, or write over it: --force.")
    return target


def _written(files: dict[Path, bytes], answer: Path) -> Path:
    """All files under temporary names first, so that a full disk leaves older ones as they were."""
    temporary = {path: path.with_name(f".{secrets.token_hex(8)}.export") for path in files}
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path].write_bytes(data)
        for path, written in temporary.items():
            os.replace(written, path)
    except OSError as error:
        raise InputError(f"'{answer}' cannot be written: {error.strerror}. Choose another place.") from None
    finally:
        for written in temporary.values():
            if written.exists():
                written.unlink()
    return answer


def _csv(table: pd.DataFrame) -> bytes:
    # Line ends of RFC 4180: with others a lone carriage return in a word would not be quoted.
    return table.to_csv(index=False, lineterminator="\r\n").encode()


def _parquet() -> Any:
    """What makes a Parquet file of a table."""
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]  # noqa: F401 - pandas writes with it
    except ModuleNotFoundError:
        raise Unavailable("parquet needs pyarrow: pip install 'timetrial[export]'") from None

    def encode(table: pd.DataFrame) -> bytes:
        file = io.BytesIO()
        table.to_parquet(file, engine="pyarrow", index=False)
        return file.getvalue()

    return encode


def _dictionary(tables: dict[str, pd.DataFrame]) -> bytes:
    import pandas as pd

    lines = dictionary({name: [str(column) for column in table.columns] for name, table in tables.items()})
    return _csv(pd.DataFrame(lines))
