from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import FakeEngine

import timetrial as tt
from timetrial.analysis.summary import summarize
from timetrial.errors import InputError, MeasurementError
from timetrial.experiment.experiment import load_words
from timetrial.experiment.runner import run_experiment
from timetrial.records import model, store
from timetrial.records.files import write_once
from timetrial.records.model import LaunchRecord
from timetrial.results.loading import load
from timetrial.results.results import Results

OLD = sorted((Path(__file__).parent / "1").iterdir())


@pytest.fixture
def measured(fake: FakeEngine, results_folder: Path) -> Results:
    words = [
        "network=mlp",
        "backend=fast,slow,absent",
        "threads=1",
        "launches=6",
        "epochs=12",
        "learning=every",
        "effort=quick",
    ]
    experiment = load_words(words, load_network=fakes.network)
    return run_experiment(experiment, results_folder, quiet=True, engine=fake.engine())


def test_what_was_measured_loads_again(measured: Results) -> None:
    again = load(measured.path)
    assert again.to_json() == measured.to_json()
    assert repr(again) == repr(measured)
    assert isinstance(again, tt.Results)


def test_to_json_keeps_the_contract(measured: Results) -> None:
    document = measured.to_json()
    json.dumps(document, allow_nan=False)
    assert list(document) == ["schema_version", "experiment", "cases"]
    keys = [
        "id", "reference", "axes", "outcome", "outcomes", "launches", "step_time_ns",
            "median_step_ns",
            "ratio", "alike",
        "interval", "samples_per_s", "samples_per_s_interval", "useful_steps", "computed_steps",
        "padded_steps", "useful_steps_per_s",
        "mean_over_median", "percent_of_peak",
        "peak_memory_bytes", "resident_peak_bytes", "on_paper_bytes", "cpus_used", "import_s", "build_s",
        "first_step_s",
        "to_steady_s", "before_steady_s", "cold_build_s", "cold_first_step_s", "accuracy",
        "accuracy_interval", "accuracy_from", "accuracy_own", "accuracy_against_reference", "parity",
        "proof_from", "proof_kept_from",
        "settings", "facts", "stop_reason", "steady", "steps", "warnings", "records",
    ]  # fmt: skip
    fast, slow, absent = document["cases"]
    for case in (fast, slow, absent):
        assert list(case) == keys
        assert {"backend", "network", "threads", "task", "device", "dtype", "semantics"} <= case[
            "axes"
        ].keys()
    assert fast["reference"] == slow["reference"] == fast["id"]
    assert (fast["facts"], absent["facts"]) == (measured.rows[0].facts, {})
    assert fast["ratio"] == {"estimate": None, "low": None, "high": None}
    assert slow["ratio"]["estimate"] == pytest.approx(2, rel=0.05)
    assert slow["ratio"]["low"] <= slow["ratio"]["estimate"] <= slow["ratio"]["high"]
    assert slow["launches"] == {"asked": 6, "ok": 6}
    assert slow["outcomes"] == {"ok": 1 + 6 + 3}
    wall_ns = slow["step_time_ns"]["estimate"]
    assert slow["samples_per_s"] == pytest.approx(64e9 / wall_ns, rel=1e-3)
    assert wall_ns == pytest.approx(slow["median_step_ns"]["estimate"] * slow["mean_over_median"], rel=1e-3)
    assert slow["mean_over_median"] > 1.02, "first steps of segments take twice as long, and count"
    assert slow["percent_of_peak"] == pytest.approx(
        100 * 2e6 / (slow["step_time_ns"]["estimate"] * 1e-9) / 1e11
    )
    assert slow["accuracy_interval"]["seeds"] == 3
    assert slow["parity"] == {"status": "passed", "max_error": 1e-7, "tensor": "conv1.weight"}
    assert absent["outcome"] == "unavailable"
    assert absent["step_time_ns"] == {"estimate": None, "low": None, "high": None}
    assert "pip install absent" in absent["warnings"][0]


def test_more_than_the_peak_is_explained_by_the_algorithm(measured: Results) -> None:
    slow = measured.rows[1]
    assert not slow.warnings
    record = measured.experiment.model_copy(update={"peak_flops": {"1": 1e9}})
    summary = summarize(record, slow.launches)
    assert summary.rows[1].percent_of_peak == pytest.approx(1000, rel=0.05)
    assert "its algorithm does less than that work (Winograd" in summary.rows[1].warning_lines[0]


def test_sel_narrows_and_keeps_the_ratio(measured: Results) -> None:
    (row,) = measured.sel(backend="slow", threads=1)
    assert row.ratio is not None
    assert row.ratio.estimate == pytest.approx(2, rel=0.05)
    assert len(measured.sel(backend=["slow", "fast"])) == 2
    with pytest.raises(InputError, match=r"no axis 'backed'. Did you mean 'backend'"):
        measured.sel(backed="slow")
    with pytest.raises(InputError, match="No case has backend='none'"):
        measured.sel(backend="none")


def test_a_selection_reads_nothing_again(measured: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, launches = measured.rows, measured.launches
    monkeypatch.setattr(store, "read_record", None)
    part = measured.sel(backend="slow")
    assert part.rows == [row for row in whole if row.case.backend == "slow"]
    assert part.launches == [one for one in launches if one.record.case == part.rows[0].case.id]
    assert part.sel(threads=1).whole is measured
    assert measured.rows == whole
    assert len(part.warnings) == len(measured.warnings)


def test_to_pandas(measured: Results) -> None:
    cases = measured.to_pandas("cases")
    assert list(cases["backend"]) == ["fast", "slow", "absent"]
    assert cases["ratio"][1] == pytest.approx(2, rel=0.05)
    launches = measured.to_pandas("launches")
    assert len(launches) == len(measured.launches) == 2 * (1 + 6 + 3)
    steps = measured.sel(backend="slow").to_pandas("steps")
    assert set(steps["kind"]) == {"first", "warmup", "steady", "train"}
    steady = steps[(steps["kind"] == "steady") & ~steps["first_in_segment"]]
    assert steady["duration_ns"].median() == pytest.approx(202_500)
    with pytest.raises(InputError, match="no table 'step'"):
        measured.to_pandas("step")  # type: ignore[arg-type]


def test_what_went_on_behind_a_turn_is_read_where_it_was_written_first() -> None:
    segment = {"steps": 1, "first_stamp": 0, "stamps": 2, "first_loss": 0, "losses": 0}
    old = {
        "id": "000", "case": "a", "purpose": "speed", "seed": 1, "block": 0, "position": 0, "outcome": "ok",
        "started_at": "2026-01-01T00:00:00+00:00", "duration_s": 1.0,
        "segments": [{"kind": kind, **segment} for kind in ("first", "turn", "turn")],
        "turns": [{"round": 0, "behind_ns": 7}, {"round": 1, "behind_ns": 0}],
    }  # fmt: skip
    read = LaunchRecord.model_validate(old)
    assert [one.behind_ns for one in read.segments] == [0, 7, 0]
    assert [turn.round for turn in read.turns] == [0, 1]


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_old_records_load(folder: Path) -> None:
    results = load(folder)
    assert json.loads((folder / "expected.json").read_text(encoding="utf-8")) == [
        {
            "backend": row.case.backend,
            "outcome": row.outcome,
            "step_time_ns": row.step_time_ns and row.step_time_ns.estimate,
        }
        for row in results
    ]
    assert "records:" in repr(results)
    expected = folder / "expected_profile.json"
    if expected.exists():
        assert json.loads(expected.read_text(encoding="utf-8")) == [
            {
                "backend": case["axes"]["backend"],
                "outcome": case["outcome"],
                "profiled_steps": case["profiled_steps"],
                "layers": [
                    [layer["node"], layer["direction"], layer["time_ns"]["median"]]
                    for layer in case["layers"]
                ],
            }
            for case in results.profile.to_json()["cases"]
        ]


def test_records_are_found_by_the_beginning_of_their_id(measured: Results, results_folder: Path) -> None:
    assert store.find(measured.path.name[:3], results_folder) == measured.path
    assert store.find(measured.path / "experiment.json") == measured.path


def damaged(path: Path, change: Any) -> None:
    path.chmod(0o644)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.mark.attempt
def test_bad_records(measured: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no records at"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError, match="is not a record"):
        load(tmp_path)
    record = measured.path / "launches" / "000" / "record.json"
    damaged(record, lambda text: text[: len(text) // 2])
    assert "record.json' is damaged (truncated?)" in "".join(load(measured.path).warnings)
    damaged(
        measured.path / "experiment.json",
        lambda text: text.replace('"schema_version": 1', '"schema_version": 9'),
    )
    with pytest.raises(InputError, match="has schema 9; this timetrial reads up to 1"):
        load(measured.path)
    damaged(measured.path / "experiment.json", lambda text: text.replace("9,", '1, "typo": 1,', 1))
    with pytest.raises(InputError, match="'typo'"):
        load(measured.path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 // 8 * 8]),
    "not whole": lambda file: file.write_bytes(file.read_bytes()[:-3]),
    "longer": lambda file: file.write_bytes(file.read_bytes() + bytes(8)),
    "edited": lambda file: file.write_bytes(file.read_bytes()[:-8] + b"\1" * 8),
    "swapped": lambda file: file.write_bytes(file.read_bytes()[::-1]),
    "gone": lambda file: file.unlink(),
    "folder": lambda file: (file.unlink(), file.mkdir()),
    "fifo": lambda file: (file.unlink(), os.mkfifo(file)),
    "8 GB": lambda file: os.truncate(file, 8 << 30),
    "loop": lambda file: (file.unlink(), file.symlink_to(file)),
}
RECORDS: dict[str, Callable[[Path], object]] = {
    **DAMAGES,
    "digits": lambda file: file.write_text('{"schema_version": ' + "9" * 5000 + "}"),
    "nested": lambda file: file.write_text("[" * 100_000),
    "NaN": lambda file: file.write_text(
        file.read_text().replace('"duration_s": ', '"duration_s": NaN, "x": ')
    ),
    "list": lambda file: file.write_text("[]"),
    "number": lambda file: file.write_text("7"),
    "latin": lambda file: file.write_bytes(b'{"id": "\xff\xfe"}'),
    "empty": lambda file: file.write_text(""),
    "edited": lambda file: file.write_text(file.read_text().replace('"case"', '"cases"')),
    "swapped": lambda file: file.write_bytes(file.read_bytes()[::-1]),
}


@pytest.mark.attempt
@pytest.mark.parametrize("file", ["stamps.bin", "losses.bin"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_samples_that_disagree_with_their_record_are_named(measured: Results, damage: str, file: str) -> None:
    first = next(one for one in measured.launches if one.record.purpose == "speed")
    DAMAGES[damage](first.folder / file)
    again = load(measured.path)
    row = next(row for row in again if row.case.id == first.record.case)
    assert isinstance(again, Results)
    assert row.outcome == "damaged"
    assert f"{first.folder.name}/{file}" in (row.reason or "")
    assert row.outcomes == {"ok": 9, "damaged": 1}
    others = [row for row in again if row.case.id != first.record.case and row.outcome != "unavailable"]
    assert [row.outcome for row in others] == ["ok"]
    shown = " ".join(repr(again).split())
    assert "damaged: " in shown
    json.dumps(again.to_json(), allow_nan=False)
    again.to_pandas("steps")


@pytest.mark.attempt
@pytest.mark.parametrize("damage", [name for name in RECORDS if name not in ("longer", "not whole")])
def test_a_record_that_cannot_be_read_is_left_out_and_named(measured: Results, damage: str) -> None:
    before = len(measured.launches)
    RECORDS[damage](measured.path / "launches" / "003" / "record.json")
    again = load(measured.path)
    assert isinstance(again, Results)
    said = [words for words in again.warnings if words.startswith("damaged, and left out: ")]
    assert len(again.launches) == before - 1
    # Without a record a launch is one that was interrupted; pathlib takes a loop of links for none as well.
    assert len(said) == (0 if damage in ("gone", "loop") else 1), said
    assert all("launches/003/record.json" in words for words in said)
    assert ("damaged, and left out" in repr(again)) is bool(said)


@pytest.mark.attempt
def test_written_once(tmp_path: Path) -> None:
    write_once(tmp_path / "file", b"first")
    with pytest.raises(MeasurementError, match="never changed"):
        write_once(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.attempt
def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("timetrial.records.files.os.fsync", full)
    with pytest.raises(MeasurementError, match=r"No space left on device. Free some space"):
        write_once(tmp_path / "file", b"x")
    assert not list(tmp_path.iterdir())


@pytest.mark.attempt
def test_stamps_that_go_backward_are_damaged_without_marks_too(measured: Results) -> None:
    """As in records that are older than the marks."""
    file = sorted(measured.path.glob("launches/*/record.json"))[0]
    document = json.loads(file.read_text())
    del document["files"]
    file.write_text(json.dumps(document))
    assert store.read_launch(file.parent).outcome == "ok"
    stamps = file.with_name("stamps.bin")
    data = bytearray(stamps.read_bytes())
    data[80:88] = bytes(8)
    stamps.write_bytes(bytes(data))
    record = store.read_launch(file.parent)
    assert record.outcome == "damaged"
    assert "goes backward" in str(record.reason)
    assert "damaged" in repr(Results(measured.path))


@pytest.mark.attempt
@pytest.mark.parametrize("axis", ["backend", "network", "threads", "task"])
def test_a_record_whose_axes_lack_one_is_shown(measured: Results, axis: str) -> None:
    file = measured.path / "experiment.json"
    document = json.loads(file.read_text())
    for case in document["cases"]:
        del case["axes"][axis]
    file.write_text(json.dumps(document))
    found = Results(measured.path)
    assert "fast" in repr(found)
    json.dumps(found.to_json(), allow_nan=False)


def test_the_schema_page_has_every_field() -> None:
    page = Path(store.__file__).with_name("SCHEMA.md").read_text(encoding="utf-8")
    for record in (model.ExperimentRecord, model.CaseRecord, model.LaunchRecord, model.Segment, model.Parity,
                   model.Memory, model.Setting, model.Evaluation, model.Comparison):  # fmt: skip
        for name in record.model_fields:
            assert f"`{name}`" in page or f"{name}," in page or f"{name}}}" in page, (record.__name__, name)
