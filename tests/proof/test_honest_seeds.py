"""No honest contender is refused: 25 seeds of what is shipped, over real data, and ResNet-20.

Each seed has its own initial values, order of images and clear batches; each contender rounds in its own way.
Were 1 % of proofs or ends refused, the eight tests would miss it with a probability of 2 % (0.99^400).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan
from native_twin import NativeTwin
from twins import Bench

from timetrial.launch import run_launch
from timetrial.networks import load_network

SEEDS = 25


@pytest.mark.full
@pytest.mark.parametrize("network", ["mlp", "lenet5"])
@pytest.mark.parametrize("backend", ["eigen", "cblas", "onednn", "libtorch"])
def test_no_seed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, network: str
) -> None:
    pytest.importorskip("sklearn")
    if backend == "libtorch":
        pytest.importorskip("torch")
    refused = {}
    for seed in range(1, SEEDS + 1):
        monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
        bench = Bench.of(network, "digits28", seed=seed, batch_size=16)
        monkeypatch.delenv("TIMETRIAL_CACHE")  # what is built for LibTorch is taken from where it is

        def twin(prepared: object) -> NativeTwin:
            return NativeTwin(prepared, "train", backend)  # type: ignore[arg-type]

        for parity in (bench.proof_of(twin), bench.end_of(twin, steps=30)):
            if parity.status != "passed":
                refused[seed] = f"{parity.reason} {parity.turned}"
    assert refused == {}


@pytest.mark.full
@pytest.mark.parametrize("backend", ["onednn", "libtorch"])
def test_twenty_normalizations_grow_no_rounding_that_is_refused(tmp_path: Path, backend: str) -> None:
    """Of 131,072 values a channel, which oneDNN adds up one after the other."""
    if backend == "libtorch":
        pytest.importorskip("torch")
    plan = make_plan(
        tmp_path, backend, network="resnet20", dataset="synthetic-cifar", batch_size=128,
        settings={"threads": "1"}, purpose="proof", learning_rate=0.1, weight_decay=1e-4,
    )  # fmt: skip
    record = run_launch(plan)
    assert record.outcome == "ok", record.reason


@pytest.mark.full
def test_thousands_of_decisions_on_an_edge_are_told_apart(tmp_path: Path) -> None:
    """Of MobileNet v2 in its own batches: several turn in one channel, and nearly cancel."""
    own = load_network("mobilenet-v2-32")
    plan = make_plan(
        tmp_path, "onednn", network=own.name, dataset=own.dataset, batch_size=own.batch_size,
        settings={"threads": "1"}, purpose="proof", optimizer=own.optimizer,
    )  # fmt: skip
    record = run_launch(plan)
    assert record.outcome == "ok", record.reason
