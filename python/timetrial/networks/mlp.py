"""A multilayer perceptron, 784-512-512-10 on 28x28 images: nothing but matrix products."""

from __future__ import annotations

from timetrial.networks.definition import Facts, NetworkDefinition


def mlp() -> NetworkDefinition:
    """Two hidden layers of 512 rectified units."""
    return NetworkDefinition(
        name="mlp",
        nodes=[
            {"name": "flat", "kind": "flatten", "inputs": ["images"], "attributes": {}},
            {"name": "fc1", "kind": "dense", "inputs": ["flat"], "attributes": {"units": 512}},
            {"name": "relu1", "kind": "relu", "inputs": ["fc1"], "attributes": {}},
            {"name": "fc2", "kind": "dense", "inputs": ["relu1"], "attributes": {"units": 512}},
            {"name": "relu2", "kind": "relu", "inputs": ["fc2"], "attributes": {}},
            {"name": "fc3", "kind": "dense", "inputs": ["relu2"], "attributes": {"units": "classes"}},
            {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc3", "labels"], "attributes": {}},
        ],
        dataset="digits28",
        facts=Facts(
            "784-512-512-10: nothing but matrix products",
            "this project",
            (1, 28, 28),
            10,
            669_706,
            668_672,
            "by hand: products 401,408 + 262,144 + 5,120, and a bias for each of 1,034 units",
        ),
    )
