"""The native stacks against PyTorch eager and against the machine, by timetrial's own experiments."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from figures import Figure

import timetrial as tt

# Step time over PyTorch eager's at the same number of threads, by network and stack.
LIMITS = {
    "mlp": {"onednn": 0.85, "libtorch": 1.0, "eigen": 0.8, "cblas": 0.8},
    "lenet5": {"onednn": 0.55, "libtorch": 1.0, "eigen": 0.65, "cblas": 0.65},
    "dlbench-cifar": {"onednn": 0.7, "libtorch": 1.0, "eigen": 1.2, "cblas": 1.2},
}
NOT_SLOWER = 0.03  # a limit of 1.0 means "not slower", to within this
MEMORY_LIMITS = {"onednn": 0.25, "eigen": 0.25, "cblas": 0.25, "libtorch": 2 / 3}  # of PyTorch's, LeNet-5

Case = dict[str, Any]


def speed_figures() -> list[Figure]:
    """Ratios only: launches are interleaved in one run."""
    figures: list[Figure] = []
    for network, limits in LIMITS.items():
        with tempfile.TemporaryDirectory() as folder:
            results = tt.run(
                network=network,
                backend=["pytorch", *limits],
                threads=[1, 2],
                launches=6,
                reference={"backend": "pytorch"},
                results=folder,
                quiet=True,
            )
            document = results.to_json()
        figures += _ratios(network, limits, document)
        if network == "lenet5":
            figures += _memory(network, document)
    return figures


def _ratios(network: str, limits: dict[str, float], document: dict[str, Any]) -> Iterator[Figure]:
    for threads in (1, 2):
        for backend, limit in limits.items():
            what = f"{network}, {threads} thread{'s' if threads > 1 else ''}: {backend} over pytorch"
            case = _case(document, backend, threads)
            ratio = case["ratio"]["estimate"]
            if ratio is None:
                yield Figure(what, f"<= {limit:g}", f"{case['outcome']}: no ratio", False)
                continue
            measured = f"{ratio:.2f} [{case['ratio']['low']:.2f}, {case['ratio']['high']:.2f}]"
            allowed = limit + (NOT_SLOWER if limit == 1 else 0)
            yield Figure(what, f"<= {limit:g}", measured, ratio <= allowed)


def _memory(network: str, document: dict[str, Any]) -> Iterator[Figure]:
    base = _case(document, "pytorch", 1)["peak_memory_bytes"]
    for backend, limit in MEMORY_LIMITS.items():
        what = f"{network}, 1 thread: peak memory of {backend} over pytorch's"
        own = _case(document, backend, 1)["peak_memory_bytes"]
        if base is None or own is None:
            yield Figure(what, f"<= {limit:.2f}", "no memory was read", False)
            continue
        yield Figure(what, f"<= {limit:.2f}", f"{own / base:.2f} ({own / 1e6:.0f} MB)", own / base <= limit)


def _case(document: dict[str, Any], backend: str, threads: int) -> Case:
    (found,) = (
        case
        for case in document["cases"]
        if case["axes"]["backend"] == backend and case["axes"]["threads"] == threads
    )
    return dict(found)
