"""Batches of the proof that hold few different images, where the network is large (proof/parts.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from timetrial import npy
from timetrial.proof.parts import repeated
from timetrial.workloads import Prepared
from timetrial.workloads.cache import cached
from timetrial.workloads.material import PROOF_ORDERS


def of_few_images(prepared: Prepared, part: int) -> Prepared:
    """The same workload, whose streams of the proof have so many different images in a batch."""
    assert prepared.network is not None
    if part == prepared.network.batch_size:
        return prepared
    streams = prepared.job["streams"]
    orders = {name: streams[name]["order"] for name in PROOF_ORDERS}

    def make() -> Mapping[str, Any]:
        return {word: repeated(npy.load(orders[name]), part) for name, word in PROOF_ORDERS.items()}

    entry = cached("few", {"orders": orders, "part": part}, make)
    few = {
        name: {**streams[name], "order": str(entry.file(f"{word}.npy"))}
        for name, word in PROOF_ORDERS.items()
    }
    return replace(prepared, job={**prepared.job, "streams": {**streams, **few}})
