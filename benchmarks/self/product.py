"""What the plug-in adds to its library: one sgemm of 1024 x 1024 x 1024 through cblas and the engine, over a
bare call of the same library, alternating in one process."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from figures import Figure

from timetrial.cases.case import Case, Workload
from timetrial.contenders import resolve
from timetrial.core import Backend, Network, images_and_labels
from timetrial.library_files import find

EXTENT = 1024
ROUNDS = 60
ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112


def product_figures() -> list[Figure]:
    """A dense layer without bias is one sgemm: X W'."""
    library = find("openblas-scipy")
    plugin, bare = _through_plugin(str(library)), _bare(str(library))
    ratios = []
    for _ in range(ROUNDS):
        first, second, third, fourth = (_seconds(call) for call in (plugin, bare, bare, plugin))
        ratios.append((first + fourth) / (second + third))
    ratio = statistics.median(ratios)
    what = f"sgemm {EXTENT}^3 through cblas over a bare call of the same library"
    return [Figure(what, "0.98 to 1.02", f"{ratio:.3f}", 0.98 <= ratio <= 1.02)]


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _through_plugin(library: str) -> Callable[[], object]:
    attributes = {"units": EXTENT, "bias": False}
    nodes = [
        {"name": "dense", "kind": "dense", "inputs": ["images"], "attributes": attributes},
        {"name": "loss", "kind": "squared_error", "inputs": ["dense", "labels"]},
    ]
    network = Network(nodes, EXTENT, images_and_labels((EXTENT,)))
    backend = Backend(resolve(Case("cblas", Workload("mlp", "synthetic", 1, {}))).path)
    backend.configure("threads", "1")
    backend.configure("blas.library", library)
    numbers = np.random.default_rng(1).standard_normal((EXTENT, EXTENT)).astype(np.float32)
    backend.build(network, {"dense.weight": numbers}, tasks=("forward",))
    backend.step("forward", {"images": numbers})
    return lambda: backend.step("forward")


def _bare(library: str) -> Callable[[], object]:
    opened = ctypes.CDLL(library)  # the same file: the same library, already loaded
    whole, one, address = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    sgemm = opened.scipy_cblas_sgemm
    sgemm.restype = None
    sgemm.argtypes = [whole] * 6 + [one, address, whole, address, whole, one, address, whole]
    # data_as() keeps each array alive as long as its address.
    a, b, c = (
        np.random.default_rng(seed)
        .standard_normal((EXTENT, EXTENT))
        .astype(np.float32)
        .ctypes.data_as(address)
        for seed in range(3)
    )
    extents = [EXTENT] * 3
    return partial(
        sgemm, ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, *extents, 1.0, a, EXTENT, b, EXTENT, 0.0, c, EXTENT
    )
