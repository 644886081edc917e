"""Networks of several losses: what is minimized is their weighted sum, in every contender alike; each way to
get the sum wrong is caught."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words
from own_networks import TWO_LOSSES
from twins import Bench
from ways import PURPOSES_AND_TASKS

import timetrial as tt
from timetrial.launch.run import run_launch

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


@pytest.fixture
def network(tmp_path: Path) -> str:
    file = tmp_path / "two.toml"
    file.write_text(TWO_LOSSES, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(("purpose", "task"), PURPOSES_AND_TASKS)
@pytest.mark.parametrize("backend", ["eigen", "onednn", "cblas", "libtorch", "pytorch"])
def test_they_are_proven_and_timed(
    tmp_path: Path, network: str, backend: str, purpose: str, task: str
) -> None:
    if backend in ("libtorch", "pytorch"):
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    plan = make_plan(
        tmp_path / "launch", backend, network=network, purpose=purpose, task=task, learning_rate=0.005
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    judged = record.parity if purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed", judged


@pytest.mark.parametrize("backend", ["eigen", pytest.param("pytorch", marks=pytest.mark.full)])
def test_they_are_learned_by_the_first(tmp_path: Path, network: str, backend: str) -> None:
    """Accuracy is that of the prediction, which the first loss is of."""
    if backend == "pytorch":
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    results = tt.run(
        network=network,
        dataset="synthetic",
        backend=backend,
        threads=1,
        launches=1,
        epochs=2,
        **{"optimizer.learning_rate": 0.005},  # type: ignore[arg-type]
        results=tmp_path / "results",
    )
    row = results.rows[0]
    assert row.outcome == "ok"
    assert row.accuracy is not None
    assert row.accuracy.estimate > 0.5


def test_the_numpy_framework_passes(tmp_path: Path, network: str) -> None:
    record = run_launch(make_plan(tmp_path / "launch", PLANTED, network=network, purpose="proof"))
    assert record.outcome == "ok", words(record)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [("one_loss", "gradient again.bias"), ("equal_losses", "loss"), ("loss_without_weight", "loss")],
)
def test_a_defect_is_caught_and_named(network: str, defect: str, tensor: str) -> None:
    parity = Bench.of(network, "synthetic", batch_size=8).proof(defect)
    assert parity.status == "failed"
    assert parity.tensor == tensor, parity.reason
