"""Where exports go: nothing is lost, and bad input is said before anything is written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEngine
from test_exports import OLD
from typer.testing import CliRunner, Result

from timetrial.cli.main import app
from timetrial.errors import InputError
from timetrial.exports import FOLDERS, FORMATS
from timetrial.exports.formats import STORES
from timetrial.results.results import Results


@pytest.fixture
def call(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["export", *words])


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    file = tmp_path / "taken.json"
    file.write_text("mine", encoding="utf-8")
    return file


def test_a_path_is_returned_and_holds_the_text(measured: Results, tmp_path: Path) -> None:
    path = tmp_path / "new" / "bench.json"
    assert measured.export("bencher", path) == path
    assert path.read_text(encoding="utf-8") == measured.export("bencher")
    assert [one.name for one in path.parent.iterdir()] == ["bench.json"], "no temporary file is left"


@pytest.mark.parametrize("force", [False, True])
def test_what_exists_is_kept_unless_forced(measured: Results, taken: Path, force: bool) -> None:
    if not force:
        with pytest.raises(InputError, match=r"taken.json' exists. .* --force"):
            measured.export("bencher", taken)
        assert taken.read_text() == "mine"
    else:
        measured.export("bencher", taken, force=True)
        assert json.loads(taken.read_text())


def test_a_folder_takes_tables_once(measured: Results, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    measured.export("csv", tmp_path)
    before = (tmp_path / "cases.csv").read_bytes()
    with pytest.raises(InputError, match=r"cases.csv' exists"):
        measured.export("csv", tmp_path)
    (tmp_path / "cases.csv").unlink()
    with pytest.raises(InputError, match=r"launches.csv' exists"):
        measured.export("csv", tmp_path)
    assert not (tmp_path / "cases.csv").exists(), "all or nothing"
    measured.export("csv", tmp_path, force=True)
    assert (tmp_path / "cases.csv").read_bytes() == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.attempt
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("inside", [".", "launches", "experiment.json", "new", "../link"])
def test_records_are_never_written_into(measured: Results, format: str, inside: str) -> None:
    (measured.path.parent / "link").symlink_to(measured.path, target_is_directory=True)
    before = {file: file.read_bytes() for file in measured.path.rglob("*") if file.is_file()}
    place = measured.path / inside
    with pytest.raises(InputError):
        measured.export(format, place if inside != "." else place / "x", force=True)
    assert before == {file: file.read_bytes() for file in measured.path.rglob("*") if file.is_file()}


@pytest.mark.attempt
def test_only_regular_files_are_written_over(measured: Results, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, words in (("fifo", "no regular file"), (".", "is a folder")):
        with pytest.raises(InputError, match=words):
            measured.export("bencher", tmp_path / name, force=True)
    with pytest.raises(InputError, match="no regular file"):
        measured.export("bencher", "/dev/null", force=True)
    assert Path("/dev/null").is_char_device()


@pytest.mark.attempt
def test_through_a_link(measured: Results, tmp_path: Path, taken: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(taken)
    with pytest.raises(InputError, match="exists"):
        measured.export("bencher", link)
    measured.export("bencher", link, force=True)
    assert link.is_symlink()
    assert json.loads(taken.read_text())


@pytest.mark.attempt
def test_a_full_disk_leaves_what_was_there(
    measured: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured.export("csv", tmp_path / "csv")
    before = {file.name: file.read_bytes() for file in (tmp_path / "csv").iterdir()}
    write, calls = Path.write_bytes, []

    def full(self: Path, data: Any) -> int:
        calls.append(self)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        measured.sel(backend="fast").export("csv", tmp_path / "csv", force=True)
    assert {file.name: file.read_bytes() for file in (tmp_path / "csv").iterdir()} == before


@pytest.mark.attempt
@pytest.mark.parametrize("path", ["taken.json/below", "a\0b", "x" * 300])
def test_paths_that_cannot_be(measured: Results, taken: Path, path: str) -> None:
    for format in ("bencher", "csv"):
        with pytest.raises(InputError):
            measured.export(format, taken.parent / path)
    assert taken.read_text() == "mine"


def test_command_prints_one_object(call: Callable[..., Result], measured: Results) -> None:
    done = call(str(measured.path), "--format", "bencher")
    assert done.exit_code == 0
    assert done.stdout == measured.export("bencher")
    assert "left out, 4 rows have no numbers:" in done.stderr
    assert "  crashes network=mlp" in done.stderr
    assert ": crash: the contender crashes" in done.stderr


def test_command_leaves_nothing_out_where_failures_have_a_place(
    call: Callable[..., Result], measured: Results
) -> None:
    done = call("last", "--format", "google-benchmark")
    assert len(json.loads(done.stdout)["benchmarks"]) == 6
    assert done.stderr == ""


# MLflow's packages take more than 100 MB: `make test-all` installs them.
@pytest.mark.parametrize(
    "format", [pytest.param(one, marks=[pytest.mark.full] if one == "mlflow" else []) for one in FORMATS]
)
def test_command_writes(call: Callable[..., Result], tmp_path: Path, format: str) -> None:
    pytest.importorskip(
        {"parquet": "pyarrow", "mlflow": "mlflow", "tensorboard": "tensorboard"}.get(format, "json")
    )
    done = call(str(OLD / "null-eigen"), "--format", format, "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert "written: out" in done.stderr
    assert (tmp_path / "out").is_dir() is (format in (*FOLDERS, *STORES))
    again = call(str(OLD / "null-eigen"), "--format", format, "-o", "out")
    if format == "history":
        assert again.exit_code == 0, "it is appended to"
        return
    assert again.exit_code == 2
    assert ("has record 6011 already" if format == "mlflow" else "exists") in again.stderr
    assert call(str(OLD / "null-eigen"), "--format", format, "-o", "out", "--force").exit_code == 0


def test_command_takes_a_race(call: Callable[..., Result], raced: Callable[..., Any]) -> None:
    found = raced("backend=fast,slow")
    done = call(found.folder.name, "--format", "github-action")
    assert [one["value"] for one in json.loads(done.stdout)] == [
        level["estimate"] for level in found.to_json()["levels"].values()
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing", "--format", "csv", "-o", "out"), "There are no records at 'nothing'"),
        (("nothing", "--format", "parqet"), "There is no format 'parqet'. Did you mean 'parquet'?"),
        (("nothing", "--format", "xml"), "Known: bencher, csv, github-action, google-benchmark, history, "),
        ((".", "--format", "csv"), "is not a record"),
        ((str(OLD / "null-eigen"), "--format", "csv"), "give the folder that they go into, -o FOLDER"),
        ((str(OLD / "null-eigen"),), "Missing option '--format'"),
    ],
)
def test_bad_input_is_one_message_on_stderr(
    call: Callable[..., Result], tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
