"""Mistakes that are easily made with groups, and with padding at one side: right shapes of wrong numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from twins import Bench

NETWORK = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, stride = 2, padding = "same" }
[[nodes]]
name = "relu1"
kind = "relu"
[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 9, kernel = 3, stride = [3, 2], groups = 3, dilation = 2, padding = "same" }
[[nodes]]
name = "flat"
kind = "flatten"
[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }
[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""


@pytest.mark.parametrize(
    ("defect", "tensor"),
    [("none", None), ("padding_in_front", "activation conv1"), ("shuffled_groups", "activation conv2")],
)
def test_what_is_mistaken_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str, tensor: str | None
) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "network.toml"
    path.write_text(NETWORK)
    parity = Bench.of(str(path), "synthetic-cifar", batch_size=8).proof(defect)
    assert parity.status == ("passed" if tensor is None else "failed"), parity.reason
    if tensor is not None:
        assert parity.tensor == tensor
        assert tensor in (parity.reason or "")
