"""What a network's values and their gradients take: what a layer adds, in units of its own output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.core import Backend, Network, images_and_labels
from timetrial.core.native import native_dir
from timetrial.library_files import find

CHANNELS, SIDE, BATCH = 16, 32, 32
OUTPUT = 4 * BATCH * CHANNELS * SIDE**2  # bytes
SHALLOW, DEEP = 2, 12


def conv(name: str, source: str | None = None) -> dict[str, Any]:
    attributes = {"channels": CHANNELS, "kernel": 3, "padding": 1, "bias": False}
    return {
        "name": name,
        "kind": "conv2d",
        "attributes": attributes,
        **({"inputs": [source]} if source else {}),
    }


def plain(i: int) -> list[dict[str, Any]]:
    return [conv(f"conv{i}"), {"name": f"relu{i}", "kind": "relu"}]


def residual(i: int) -> list[dict[str, Any]]:
    before = f"relu{i - 1}" if i else "stem"
    return [
        conv(f"conv{i}", before),
        {"name": f"bn{i}", "kind": "batch_norm"},
        {"name": f"sum{i}", "kind": "add", "inputs": [f"bn{i}", before]},
        {"name": f"relu{i}", "kind": "relu"},
    ]


BLOCKS = {"plain": plain, "residual": residual}


def held(plugin: str, kind: str, depth: int) -> int:
    """Anonymous bytes of this process behind two steps."""
    nodes = [conv("stem")]
    for i in range(depth):
        nodes += BLOCKS[kind](i)
    nodes += [
        {"name": "mean", "kind": "global_avg_pool2d"},
        {"name": "fc", "kind": "dense", "attributes": {"units": 4}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
    ]
    network = Network(nodes, BATCH, images_and_labels((3, SIDE, SIDE)))
    preload = [find("onednn-pypi")] if plugin == "onednn" else []
    backend = Backend(native_dir() / "backends" / f"{plugin}.so", preload=preload)
    backend.configure("threads", "1")
    values = {one["name"]: np.full(one["shape"], 0.01, np.float32) for one in network.initial_tensors}
    backend.build(network, values, {"name": "sgd", "learning_rate": 0.1}, ["train"])
    batch = {"images": np.ones((BATCH, 3, SIDE, SIDE), np.float32), "labels": np.arange(BATCH) % 4}
    for _ in range(2):
        backend.step("train", batch)
    (line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("RssAnon")]
    return 1024 * int(line.split()[1])


@pytest.mark.parametrize("plugin", ["eigen-sse2", "onednn"])  # cblas shares eigen's engine
# A convolution's output, over which its relu writes; and of a block the convolution's and the sum.
@pytest.mark.parametrize(("kind", "outputs"), [("plain", 1), ("residual", 2)])
def test_a_layer_adds_its_output_and_no_gradient(plugin: str, kind: str, outputs: int) -> None:
    found = [
        int(
            subprocess.run(
                [sys.executable, __file__, plugin, kind, str(depth)], check=True, stdout=subprocess.PIPE
            ).stdout
        )
        for depth in (SHALLOW, DEEP)
    ]
    each = (found[1] - found[0]) / (DEEP - SHALLOW) / OUTPUT
    assert outputs - 0.2 < each < outputs + 0.5


if __name__ == "__main__":
    print(held(sys.argv[1], sys.argv[2], int(sys.argv[3])))
