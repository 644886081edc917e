"""What a second thread gains each native stack, over what it gains the machine's peak.

Both sides are the best that was seen: a neighbor on the second core can only take from a gain, and takes more
from two threads than from one.
"""

from __future__ import annotations

import os
import tempfile

from figures import Figure
from speed import LIMITS

import timetrial as tt
from timetrial.core.cpu import measure_peak_flops

LIMIT = 0.85


def scaling_figures() -> list[Figure]:
    """Per network and stack; without PyTorch, whose gain is its own affair."""
    if len(os.sched_getaffinity(0)) < 2:
        return [Figure("gain by a second thread", f">= {LIMIT}", "no second CPU", False)]
    figures: list[Figure] = []
    peak = {1: 0.0, 2: 0.0}
    steps: dict[tuple[str, str], dict[int, float]] = {}
    for network, limits in LIMITS.items():
        _measure_peak(peak)
        for backend, best in _best_steps(network, list(limits)).items():
            steps[network, backend] = best
    _measure_peak(peak)
    machine = peak[2] / peak[1]
    for (network, backend), best in steps.items():
        gain = best[1] / best[2]
        figures.append(
            Figure(
                f"{network}, {backend}: gain by a second thread over that of the peak",
                f">= {LIMIT}",
                f"{gain:.2f} / {machine:.2f} = {gain / machine:.2f}",
                gain / machine >= LIMIT,
            )
        )
    return figures


def _measure_peak(peak: dict[int, float]) -> None:
    for _ in range(3):
        for threads in peak:
            peak[threads] = max(peak[threads], measure_peak_flops(threads, seconds=0.5).flops_per_s)


def _best_steps(network: str, backends: list[str]) -> dict[str, dict[int, float]]:
    """Backend -> threads -> median step of the fastest launch, in nanoseconds."""
    with tempfile.TemporaryDirectory() as folder:
        results = tt.run(
            network=network, backend=backends, threads=[1, 2], launches=6, results=folder, quiet=True
        )
        frame = results.to_pandas("launches")
    best: dict[str, dict[int, float]] = {backend: {} for backend in backends}
    for (backend, threads), rows in frame.groupby(["backend", "threads"]):
        best[str(backend)][int(threads)] = float(rows["step_time_ns"].min())
    return best
