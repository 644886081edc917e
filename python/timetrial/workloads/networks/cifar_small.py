"""A small convolutional network for 3x32x32 images: padded 3x3 convolutions, both kinds of pooling."""

from __future__ import annotations

from timetrial.workloads.definition import NetworkDefinition


def cifar_small() -> NetworkDefinition:
    """conv3x3-32, max2, conv3x3-32, average 2, conv3x3-64, average 2, 64 rectified units, the classes."""
    return NetworkDefinition(
        name="cifar-small",
        nodes=[
            _convolution("conv1", "images", 32),
            {"name": "relu1", "kind": "relu", "inputs": ["conv1"], "attributes": {}},
            {"name": "pool1", "kind": "max_pool2d", "inputs": ["relu1"], "attributes": {"kernel": 2}},
            _convolution("conv2", "pool1", 32),
            {"name": "relu2", "kind": "relu", "inputs": ["conv2"], "attributes": {}},
            {"name": "pool2", "kind": "avg_pool2d", "inputs": ["relu2"], "attributes": {"kernel": 2}},
            _convolution("conv3", "pool2", 64),
            {"name": "relu3", "kind": "relu", "inputs": ["conv3"], "attributes": {}},
            {"name": "pool3", "kind": "avg_pool2d", "inputs": ["relu3"], "attributes": {"kernel": 2}},
            {"name": "flat", "kind": "flatten", "inputs": ["pool3"], "attributes": {}},
            {"name": "fc1", "kind": "dense", "inputs": ["flat"], "attributes": {"units": 64}},
            {"name": "relu4", "kind": "relu", "inputs": ["fc1"], "attributes": {}},
            {"name": "fc2", "kind": "dense", "inputs": ["relu4"], "attributes": {"units": "classes"}},
            {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc2", "labels"], "attributes": {}},
        ],
        dataset="synthetic-cifar",
        epochs=6,
    )


def _convolution(name: str, source: str, channels: int) -> dict[str, object]:
    """A 3x3 convolution that keeps height and width."""
    attributes = {"channels": channels, "kernel": 3, "padding": "same"}
    return {"name": name, "kind": "conv2d", "inputs": [source], "attributes": attributes}
