"""No honest contender is refused: 25 seeds of what is shipped, over real data.

Each seed has its own initial values, order of images and clear batches; each contender rounds in its own way.
Were 1 % of proofs or ends refused, the eight tests would miss it with a probability of 2 % (0.99^400).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from native_twin import NativeTwin
from twins import Bench

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
