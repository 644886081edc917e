"""The native contender against PyTorch and against the machine, by timetrial's own experiments."""

from __future__ import annotations

import tempfile
from typing import Any

from figures import Figure

import timetrial as tt


def speed_figures() -> list[Figure]:
    """Ratios only: launches are interleaved in one run."""
    with tempfile.TemporaryDirectory() as folder:
        figures = [
            _against_pytorch(network, limit, folder) for network, limit in (("mlp", 0.9), ("lenet5", 0.8))
        ]
        return [*figures, _two_threads(folder)]


def _against_pytorch(network: str, limit: float, folder: str) -> Figure:
    what = f"{network}, batch 64, one thread: eigen over pytorch eager"
    document = tt.run(
        network=network,
        backend=["pytorch", "eigen"],
        threads=1,
        effort="normal",
        reference={"backend": "pytorch"},
        results=folder,
        quiet=True,
    ).to_json()
    eigen = _case(document, backend="eigen")
    if eigen["ratio"] is None:
        return Figure(what, f"<= {limit:g}", f"{eigen['outcome']}: no ratio", False)
    ratio = eigen["ratio"]
    measured = f"{ratio['estimate']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"
    return Figure(what, f"<= {limit:g}", measured, ratio["estimate"] <= limit)


def _two_threads(folder: str) -> Figure:
    results = tt.run(
        network="lenet5", backend="eigen", threads=[1, 2], effort="normal", results=folder, quiet=True
    )
    document = results.to_json()
    one, two = (_case(document, threads=threads)["step_time_ns"] for threads in (1, 2))
    peak = results.experiment.peak_flops
    what = "lenet5, eigen: speed-up by the second thread over that of the machine's peak"
    if one is None or two is None:
        return Figure(what, ">= 0.85", "no second CPU", False)
    gain, machine = one["estimate"] / two["estimate"], peak["2"] / peak["1"]
    return Figure(
        what, ">= 0.85", f"{gain:.2f} / {machine:.2f} = {gain / machine:.2f}", gain / machine >= 0.85
    )


def _case(document: dict[str, Any], **axes: object) -> dict[str, Any]:
    (found,) = (
        case
        for case in document["cases"]
        if all(str(case["axes"][key]) == str(value) for key, value in axes.items())
    )
    return dict(found)
