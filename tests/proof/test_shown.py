"""Contenders that show something else than they compute."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import small_network
from twins import Bench

pytestmark = pytest.mark.attempt


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    return Bench.of(small_network(tmp_path), "synthetic", batch_size=8, learning_rate=0.05)


@pytest.mark.parametrize(
    ("defect", "said"),
    [
        ("shown_other_batch", "activation conv1: relative L2 error"),
        ("shown_step_before", "activation conv1: relative L2 error"),
        ("shown_in_f32", "loss: relative error"),
        ("shown_nan", "activation conv1: relative L2 error not finite"),
        ("shown_infinity", "activation conv1: relative L2 error not finite"),
        ("shown_transposed", "activation conv1: shape (8, 4, 28, 24), expected (8, 4, 24, 28)"),
        ("shown_half", "activation conv1: shape (4, 4, 24, 28), expected (8, 4, 24, 28)"),
        ("gradient_off:conv1.weight", "gradient conv1.weight"),
    ],
)
def test_they_are_caught_by_proof_and_end(bench: Bench, defect: str, said: str) -> None:
    for parity in (bench.proof(defect), bench.end(defect, steps=9)):
        assert parity.status == "failed"
    parity = bench.proof(defect)
    assert said in (parity.reason or ""), parity.reason


def test_nothing_need_be_shown(bench: Bench) -> None:
    """It is judged by the judge's own decisions then, which may be others."""
    assert bench.proof("shown_nothing").status == "passed"
