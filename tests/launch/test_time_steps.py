"""Steps of sequences that count: of the steps that are timed, in the record and in what is said of a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from launching import make_plan, words

import timetrial as tt
from timetrial.launch.run import run_launch


def test_those_of_the_timed_steps_are_in_the_record(tmp_path: Path) -> None:
    vowels = {"network": "gru-vowels", "dataset": "synthetic-series", "buckets": 4}
    plan = make_plan(tmp_path / "launch", "eigen", **vowels)
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    train = plan.prepared.job["streams"]["train"]
    assert record.passes is not None
    assert record.passes.steps is not None
    timed = np.load(train["order"])[: record.passes.steps]
    lengths = np.load(train["tensors"]["lengths"])[timed]
    assert record.time_steps is not None
    assert record.time_steps.useful == pytest.approx(lengths.sum(axis=1).mean())
    assert record.time_steps.padded == 16 * np.load(train["tensors"]["series"], mmap_mode="r").shape[1]


def test_a_network_without_lengths_has_none(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "eigen", network="mlp", purpose="speed"))
    assert record.outcome == "ok", words(record)
    assert record.time_steps is None


def test_a_row_says_how_many_and_how_fast(results_folder: Path) -> None:
    results = tt.run(
        network="gru-vowels", backend="eigen", threads=1, buckets=[1, 4], launches=1, quiet=True,
        results=results_folder,
    )  # fmt: skip
    plain, sorted_by_length = results.to_json()["cases"]
    for case in (plain, sorted_by_length):
        useful, padded = case["useful_steps"], case["padded_steps"]
        assert 0 < useful < padded
        share = case["useful_steps_per_s"]["estimate"] / case["samples_per_s"]
        assert share == pytest.approx(useful / 16)
    table = results.to_pandas("cases")
    assert list(table["useful_steps"]) == [case["useful_steps"] for case in (plain, sorted_by_length)]
    line = results.rows[0].settings.command()
    assert "buckets" not in line
    assert "buckets=4" in results.rows[1].settings.command()
