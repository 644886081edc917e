"""The gradient of a small network by a plug-in with settings.

As a program, for settings that a process can be told once: gradients.py PLUGIN NAME=VALUE ... prints a digest
of its bits.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from timetrial.core import Backend, Network, images_and_labels
from timetrial.core.native import native_dir
from timetrial.library_files import find

SGD = {"name": "sgd", "learning_rate": 0.0625, "momentum": 0.5, "weight_decay": 0.25}
NODES: list[dict[str, Any]] = [
    {"name": "conv", "kind": "conv2d", "attributes": {"channels": 8, "kernel": 3, "padding": 1}},
    {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2}},
    {"name": "flat", "kind": "flatten"},
    {"name": "fc", "kind": "dense", "attributes": {"units": 4}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
]
Gradient = np.ndarray[Any, Any]


def network() -> Network:
    return Network(NODES, 8, images_and_labels((4, 12, 12)))


def gradient(plugin: str | Path, settings: dict[str, str], *, flat: bool = False) -> Gradient:
    """Of all parameters, one after the other. `plugin`: one of timetrial's by name, or a path. `flat`: images
    whose pixels are all the same."""
    return all_of(built(plugin, network(), settings, flat=flat))


def built(
    plugin: str | Path, net: Network, settings: dict[str, str], *, task: str = "gradient", flat: bool = False
) -> Backend:
    """For this task alone, behind one step of it with a batch of 8."""
    preload = [find("onednn-pypi")] if plugin == "onednn" else []
    path = native_dir() / "backends" / f"{plugin}.so" if isinstance(plugin, str) else plugin
    backend = Backend(path, preload=preload)
    for name, value in settings.items():
        backend.configure(name, value)
    draw = np.random.default_rng(1)
    weights = {p["name"]: draw.normal(size=p["shape"]).astype(np.float32) for p in net.initial_tensors}
    images = draw.normal(size=(8, 4, 12, 12)).astype(np.float32)
    backend.build(net, weights, SGD, [task])
    backend.step(task, {"images": np.ones_like(images) if flat else images, "labels": np.arange(8) % 4})
    return backend


def all_of(backend: Backend) -> Gradient:
    return np.concatenate([one.ravel() for _, one in sorted(backend.tensors("gradient").items())])


if __name__ == "__main__":
    asked = dict(pair.split("=") for pair in sys.argv[2:])
    print(hashlib.sha256(gradient(sys.argv[1], asked).tobytes()).hexdigest())
