"""Layers along time at the edges of what can be asked of them: proven like any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from launching import SHORT, make_plan, words

from timetrial.launch import Limits
from timetrial.launch.run import run_launch

ONE_LAYER = """
nodes = [
    { name = "in", kind = "embedding", inputs = ["tokens"], attributes = { vocabulary = 10000, units = 3 } },
    { name = "one", kind = "KIND", inputs = ["in", "lengths"], attributes = { units = UNITS } },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
]
"""
NATIVE = ("eigen", "cblas", "onednn")
KINDS = ("lstm", "gru", "rnn")


def _prove(folder: Path, backend: str, kind: str, *, units: int, steps: int, batch: int) -> None:
    network = folder / "own.toml"
    network.write_text(ONE_LAYER.replace("KIND", kind).replace("UNITS", str(units)), encoding="utf-8")
    plan = make_plan(
        folder / "launch",
        backend,
        network=str(network),
        dataset=f"synthetic-sentences@{steps}",
        batch_size=batch,
        settings={"threads": "1"},
        purpose="proof",
        measure=replace(SHORT, limits=Limits()),
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed", record.parity


@pytest.mark.parametrize("backend", [*NATIVE, pytest.param("libtorch", marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("units", "steps", "batch"),
    [(1, 20, 6), (5, 1, 6), (5, 20, 1)],
    ids=["one unit", "one step, all lengths equal", "one sample"],
)
def test_of_everything_one(
    tmp_path: Path, backend: str, kind: str, units: int, steps: int, batch: int
) -> None:
    if backend == "libtorch":
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    _prove(tmp_path, backend, kind, units=units, steps=steps, batch=batch)


@pytest.mark.full
@pytest.mark.parametrize("backend", NATIVE)
def test_a_hundred_thousand_steps(tmp_path: Path, backend: str) -> None:
    _prove(tmp_path, backend, "lstm", units=4, steps=100_000, batch=2)
