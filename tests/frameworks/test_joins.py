"""Networks that fan out and join, from a user's file: proven in the native backends, and each way to get a
join's gradient wrong is caught and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, words
from own_networks import FANNED

from timetrial.launch import run_launch
from timetrial.records.model import LaunchRecord

PLANTED = str(Path(__file__).parent / "planted")


def _prove(folder: Path, backend: str, **settings: str) -> LaunchRecord:
    network = folder / "fanned.toml"
    network.write_text(FANNED)
    plan = make_plan(folder / "proof", backend, network=str(network), purpose="proof", settings=settings)
    return run_launch(plan)


@pytest.mark.parametrize("backend", ["eigen", "cblas", "onednn"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_native_backends_are_proven(tmp_path: Path, backend: str, threads: str) -> None:
    record = _prove(tmp_path, backend, threads=threads)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    compared = {comparison.tensor for comparison in record.parity.comparisons}
    assert {"activation both", "activation all", "gradient conv1.weight", "gradient fc1.bias"} <= compared


def test_libtorch_is_proven(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    record = _prove(tmp_path, "libtorch", threads="1")
    assert record.outcome == "ok", words(record)


def test_a_right_framework_passes(tmp_path: Path) -> None:
    record = _prove(tmp_path, PLANTED, **{"planted.defect": "none"})
    assert record.outcome == "ok", words(record)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("forgotten_part", "gradient fc2.bias"),
        ("swapped_parts", "gradient conv1.bias"),
        ("overwritten_part", "gradient fc1.bias"),
    ],
)
def test_a_wrong_gradient_of_a_join_is_caught_and_named(tmp_path: Path, defect: str, tensor: str) -> None:
    record = _prove(tmp_path, PLANTED, **{"planted.defect": defect})
    assert record.outcome == "wrong", words(record)
    assert record.parity is not None
    assert record.parity.tensor == tensor
    assert tensor in (record.reason or "")
