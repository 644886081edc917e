"""A plug-in built outside the tree, from the public header alone, is a backend like any other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import make_plan, words

from timetrial.core import Backend, Network, images_and_labels, native
from timetrial.errors import TimetrialError, Unavailable
from timetrial.launch import run_launch


@pytest.fixture
def toy(built: Callable[..., Path]) -> Path:
    return built("toy")


def softmax_regression() -> Network:
    nodes: list[dict[str, Any]] = [
        {"name": "flat", "kind": "flatten"},
        {"name": "fc", "kind": "dense", "attributes": {"units": 10, "bias": False}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
    ]
    return Network(nodes, batch_size=16, inputs=images_and_labels((1, 8, 8)))


def test_it_is_described_by_the_child(toy: Path) -> None:
    answer = subprocess.run(
        [native.child_path(), "--describe", toy], check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(answer)["name"] == "toy"


def test_it_links_nothing_of_timetrial(toy: Path) -> None:
    needed = subprocess.run(["ldd", toy], check=True, capture_output=True, text=True).stdout
    assert "timetrial" not in needed


def test_it_trains_as_the_reference_does(toy: Path) -> None:
    draw = np.random.default_rng(1)
    weights = {"fc.weight": draw.normal(size=(10, 64)).astype(np.float32)}
    images = draw.normal(size=(16, 1, 8, 8)).astype(np.float32)
    batch = {"images": images, "labels": draw.integers(0, 10, size=16)}
    optimizer = {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.01}
    trained = []
    for plugin in (toy, native.native_dir() / "backends" / "reference.so"):
        backend = Backend(plugin)
        backend.configure("threads", "1")
        backend.build(softmax_regression(), weights, optimizer)
        losses = [backend.step("train", batch) for _ in range(5)]
        trained.append((losses, backend.tensors("parameter")["fc.weight"], backend.evaluate(batch)))
    for ours, judge in zip(*trained, strict=True):
        np.testing.assert_allclose(ours, judge, rtol=1e-4, atol=1e-5)


def test_what_it_says_about_itself_is_in_the_record(toy: Path, tmp_path: Path) -> None:
    network = tmp_path / "regression.toml"
    network.write_text(
        """
        nodes = [
            { name = "flat", kind = "flatten" },
            { name = "fc", kind = "dense", attributes = { units = "classes", bias = false } },
            { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
        ]
        """,
        encoding="utf-8",
    )
    record = run_launch(make_plan(tmp_path / "launch", str(toy), network=str(network)))
    assert record.outcome == "ok", words(record)
    assert record.facts == {"toy.weights": str(10 * 28 * 28)}


def test_what_it_lacks_is_unavailable(toy: Path) -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "flat", "kind": "flatten"},
        {"name": "relu", "kind": "relu"},
        {"name": "fc", "kind": "dense", "attributes": {"units": 10, "bias": False}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
    ]
    network = Network(nodes, batch_size=2, inputs=images_and_labels((1, 2, 2)))
    weights = {"fc.weight": np.zeros((10, 4), dtype=np.float32)}
    backend = Backend(toy)
    with pytest.raises(Unavailable, match="no layer 'relu'"):
        backend.build(network, weights, {"name": "sgd", "learning_rate": 0.1})
    with pytest.raises(TimetrialError, match="'thread'; it has: threads"):
        Backend(toy).configure("thread", "1")
