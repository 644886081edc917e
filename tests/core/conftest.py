"""A small network that every test of the core can use."""

from __future__ import annotations

from typing import Any

import pytest

from timetrial import core


@pytest.fixture
def nodes() -> list[dict[str, Any]]:
    """A small convolutional network for 1x6x6 images and 3 classes."""
    return [
        {"name": "conv", "kind": "conv2d", "attributes": {"channels": 4, "kernel": 3}},
        {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2}},
        {"name": "flat", "kind": "flatten"},
        {"name": "fc", "kind": "dense", "attributes": {"units": 3}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
    ]


@pytest.fixture
def network(nodes: list[dict[str, Any]]) -> core.Network:
    return core.Network(nodes, 8, core.images_and_labels((1, 6, 6)))
