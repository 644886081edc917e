"""csv and parquet: the tables of to_pandas(), and a dictionary of all their columns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pandas as pd
import pytest
from test_exports import HOSTILE, OLD, called

import timetrial as tt
from timetrial.errors import InputError, Unavailable
from timetrial.exports.dictionary import BY_TABLE
from timetrial.results.results import Results

TABLES: tuple[Any, ...] = ("cases", "launches", "steps")


def read(folder: Path, table: str) -> pd.DataFrame:
    file = next(folder.glob(f"{table}.*"))
    if file.suffix == ".parquet":
        return pd.read_parquet(file)
    return pd.read_csv(file, keep_default_na=False, na_values=[""], dtype={"launch": str})


def same(found: pd.Series[Any], wanted: pd.Series[Any]) -> None:
    """The same values, whatever the type that holds them; null is null."""
    both = list(zip(found.astype(object), wanted.astype(object), strict=True))
    assert all(pd.isna(one) == pd.isna(other) for one, other in both), found.name
    assert all(pd.isna(one) or one == other for one, other in both), found.name


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_round_trip(measured: Results, tmp_path: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    folder = Path(measured.export(format, tmp_path / "new" / "folder"))
    assert {one.name for one in folder.iterdir()} == {
        *(f"{one}.{format}" for one in TABLES),
        "dictionary.csv",
    }
    for table in TABLES:
        wanted, found = measured.to_pandas(table), read(folder, table)
        assert list(found.columns)[: len(wanted.columns)] == list(wanted.columns)
        ok = (found["outcome"] == "ok").to_numpy() if table != "steps" else slice(None)
        for name in wanted.columns:
            same(found[name][ok], wanted[name][ok])
            if table != "steps" and not BY_TABLE[table][name].measured:
                same(found[name], wanted[name])


def test_cases_are_those_of_the_json(measured: Results, tmp_path: Path) -> None:
    found = read(Path(measured.export("csv", tmp_path / "csv")), "cases")
    for (_, line), case in zip(found.iterrows(), measured.to_json()["cases"], strict=True):
        assert line["case"] == case["id"]
        assert line["outcome"] == case["outcome"]
        if case["outcome"] == "ok":
            assert line["step_time_ns"] == case["step_time_ns"]["estimate"]
            assert line["step_time_ns_low"] == case["step_time_ns"]["low"]
            assert line["steps"] == case["steps"]["n"]


def test_failed_rows_are_there_without_numbers(measured: Results, tmp_path: Path) -> None:
    folder = Path(measured.export("csv", tmp_path / "csv"))
    cases = read(folder, "cases")
    assert list(cases["outcome"]) == ["ok", "ok", "unavailable", "crash", "mismatch", "wrong"]
    assert list(cases["proven"]) == [True, False, False, True, True, False]
    mismatch = measured.rows[4]
    assert mismatch.step_time_ns is not None, "it has a time, which is not of what was asked"
    numbers = [name for name, column in BY_TABLE["cases"].items() if column.measured]
    assert cases.loc[2:, numbers].isna().all(axis=None)
    assert cases["reason"][3] == "the contender crashes\nTraceback: much more"
    launches = read(folder, "launches")
    failed = launches[launches["outcome"] != "ok"]
    assert len(failed)
    assert failed["step_time_ns"].isna().all()
    assert failed["reason"].notna().all()
    steps = read(folder, "steps")
    assert set(steps[steps["backend"] == "mismatched"]["outcome"]) == {"mismatch"}
    assert not steps[steps["backend"] == "slow"]["proven"].any()


def test_one_launch_has_null_and_not_0(run: Callable[..., Results], tmp_path: Path) -> None:
    cases = read(Path(run("backend=fast", "launches=1").export("csv", tmp_path / "csv")), "cases")
    assert cases["step_time_ns"].notna().all()
    assert cases[["step_time_ns_low", "step_time_ns_high", "spread_between"]].isna().all(axis=None)


def test_every_column_is_in_the_dictionary_and_nothing_else(
    measured: Results, raced: Callable[..., Any], run: Callable[..., Results], tmp_path: Path
) -> None:
    used = set()
    looked_at = run("backend=fast", "launches=1")
    fakes.write_looks(looked_at.launches[-1].folder, [{"time_ns": 1}, {"time_ns": 2}])
    for number, found in enumerate((measured, raced("backend=fast,slow"), looked_at)):
        folder = Path(found.export("csv", tmp_path / str(number)))
        dictionary = pd.read_csv(folder / "dictionary.csv", keep_default_na=False)
        assert list(dictionary) == ["table", "column", "type", "unit", "meaning", "null_when"]
        for table in dictionary["table"].unique():
            own = dictionary[dictionary["table"] == table]
            assert list(own["column"]) == list(read(folder, table).columns)
            assert set(own["column"]) <= BY_TABLE[table].keys(), "no column without words of its own"
            used |= {(table, name) for name in own["column"]}
        assert all(dictionary["meaning"])
        assert all(dictionary["null_when"])
        assert all(dictionary["unit"][dictionary["column"].str.endswith(("_ns", "_s", "_bytes"))])
    assert used == {(table, name) for table, columns in BY_TABLE.items() for name in columns}


def test_columns_that_are_never_null_are_not(measured: Results, tmp_path: Path) -> None:
    folder = Path(measured.export("csv", tmp_path / "csv"))
    for table in TABLES:
        found = read(folder, table)
        never = [name for name, column in BY_TABLE[table].items() if column.null_when == "never"]
        assert found[never].notna().all(axis=None)


def test_further_axes_are_explained(run: Callable[..., Results], tmp_path: Path) -> None:
    folder = Path(
        run("backend=fast", "blas.library=other,another", "launches=2").export("csv", tmp_path / "a")
    )
    dictionary = pd.read_csv(folder / "dictionary.csv")
    (line,) = dictionary[(dictionary["table"] == "cases") & (dictionary["column"] == "blas.library")].index
    assert dictionary["meaning"][line] == "axis of the experiment: blas.library as asked"
    assert list(read(folder, "cases")["blas.library"]) == ["other", "another"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_race(raced: Callable[..., Any], tmp_path: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    found = raced("backend=fast,slow")
    folder = found.export(format, tmp_path / "race")
    for table, wanted in (("pairs", found.to_pandas()), ("rounds", found.rounds())):
        written = read(folder, table)
        for name in wanted.columns:
            same(written[name], wanted[name])
        assert written["proven"].all()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_race_without_a_pair_that_counts(raced: Callable[..., Any], tmp_path: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    folder = raced("backend=fast,crashes").export(format, tmp_path / "race")
    pairs, rounds = read(folder, "pairs"), read(folder, "rounds")
    assert list(rounds.columns) == list(BY_TABLE["rounds"])
    assert not len(rounds)
    assert pairs["void"].notna().all()
    assert pairs[["ratio", "ratio_median", "ratio_p25"]].isna().all(axis=None)


def test_types_do_not_depend_on_what_was_found(measured: Results, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    whole = read(Path(measured.export("parquet", tmp_path / "whole")), "cases")
    failed = measured.sel(backend=["absent", "crashes"])
    part = read(Path(failed.export("parquet", tmp_path / "part")), "cases")
    assert list(part.dtypes) == list(whole.dtypes)
    nothing = read(Path(measured.sel(backend="absent").export("parquet", tmp_path / "none")), "steps")
    assert set(nothing.columns) == set(BY_TABLE["steps"])


@pytest.mark.attempt
def test_names_may_hold_anything(measured: Results, tmp_path: Path) -> None:
    for word in (HOSTILE, "\r", "null", "NA", "=1+1", " "):
        folder = Path(called(measured, word).export("csv", tmp_path / f"csv{len(word)}{word[:1].isalpha()}"))
        cases = pd.read_csv(folder / "cases.csv", keep_default_na=False, na_values=[""])
        assert cases["backend"][0] == word
        assert len(cases) == len(measured)
        for one in folder.iterdir():
            one.unlink()


@pytest.mark.attempt
def test_the_backend_null_is_no_null_and_not_proven(tmp_path: Path) -> None:
    cases = read(Path(tt.load(OLD / "null-eigen").export("csv", tmp_path / "csv")), "cases")
    line = cases[cases["backend"] == "null"].iloc[0]
    assert line["outcome"] == "ok"
    assert not line["proven"]


@pytest.mark.attempt
@pytest.mark.parametrize(("format", "module"), [("csv", "pandas"), ("parquet", "pyarrow")])
def test_a_library_that_is_absent_is_named(
    measured: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unavailable, match=r"pip install 'timetrial\[export\]'"):
        measured.export(format, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.attempt
def test_tables_need_a_folder(measured: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="csv is several files: give the folder"):
        measured.export("csv")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file; csv is several: give a folder"):
        measured.export("csv", tmp_path / "file", force=True)
    assert (tmp_path / "file").read_text() == "mine"
