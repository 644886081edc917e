"""Networks of several inputs, and such as predict numbers: proof, timed part and its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words

import timetrial as tt
from timetrial.launch.run import run_launch

TWO_SIDED = """
nodes = [
    { name = "conv", kind = "conv2d", inputs = ["images"], attributes = { channels = 4, kernel = 3 } },
    { name = "relu", kind = "relu" },
    { name = "flat", kind = "flatten" },
    { name = "all", kind = "concat", inputs = ["flat", "features"] },
    { name = "fc1", kind = "dense", attributes = { units = 24 } },
    { name = "tanh", kind = "tanh" },
    { name = "fc2", kind = "dense", attributes = { units = 4 } },
    { name = "loss", kind = "mean_squared_error", inputs = ["fc2", "values"] },
]
dataset = "synthetic-regression"
"""
AUTO_ENCODER = """
nodes = [
    { name = "flat", kind = "flatten", inputs = ["images"] },
    { name = "code", kind = "dense", attributes = { units = 12 } },
    { name = "tanh", kind = "tanh" },
    { name = "out", kind = "dense", attributes = { units = 3072 } },
    { name = "loss", kind = "mean_squared_error", inputs = ["out", "images"] },
]
dataset = "synthetic-cifar"
"""


def network(folder: Path, text: str) -> str:
    file = folder / "own.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("purpose", ["proof", "speed"])
@pytest.mark.parametrize(
    ("text", "data"), [(TWO_SIDED, "synthetic-regression"), (AUTO_ENCODER, "synthetic-cifar")]
)
@pytest.mark.parametrize("backend", ["eigen", "onednn", pytest.param("pytorch", marks=pytest.mark.full)])
def test_they_are_proven_and_timed(tmp_path: Path, backend: str, text: str, data: str, purpose: str) -> None:
    plan = make_plan(
        tmp_path / "launch", backend, network=network(tmp_path, text), dataset=data, purpose=purpose
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    judged = record.parity if purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed", judged


def test_the_table_has_no_accuracy_for_numbers(tmp_path: Path) -> None:
    results = tt.run(
        network=network(tmp_path, TWO_SIDED),
        backend=["reference", "eigen"],
        threads=1,
        launches=1,
        epochs=1,
        results=tmp_path / "results",
    )
    assert [row.outcome for row in results.rows] == ["ok", "ok"]
    assert [row.accuracy for row in results.rows] == [None, None]


def test_who_takes_one_input_says_so(tmp_path: Path) -> None:
    """An adapter is asked for nothing that it would compute otherwise."""
    planted = Path(__file__).parents[1] / "frameworks" / "planted"
    own = network(tmp_path, TWO_SIDED)
    plan = make_plan(tmp_path / "launch", str(planted), network=own, dataset="synthetic-regression")
    record = run_launch(plan)
    assert record.outcome == "unavailable", words(record)
    assert record.reason is not None
    assert "the backend takes one input; the network has: images, features" in record.reason
