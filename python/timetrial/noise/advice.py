"""Advice about a machine from what is known of it at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timetrial.core.cpu import Peak

TURNS = 4
TURN_S = 0.06
LEAST_GAIN = 1.5  # two CPUs that share a core do 1.0 to 1.3 times the work of one


def two_threads_over_one(measure: Callable[[int, float], Peak]) -> float:
    """The best of several measurements each, in turns: what disturbs one only takes away. A quota does not
    show in windows as short as these."""
    one, two = zip(*((measure(1, TURN_S), measure(2, TURN_S)) for _ in range(TURNS)), strict=True)
    best_one, best_two = (max(peak.flops_per_s for peak in peaks) for peaks in (one, two))
    return float(best_two / best_one)


def poor_gain(two_threads: float | None) -> list[str]:
    """Advice where two threads hardly beat one."""
    if two_threads is None or two_threads >= LEAST_GAIN:
        return []
    return [
        f"two threads do {two_threads:.2f} times the work of one: the CPUs share a core, a quota holds them, "
        "or other programs use them. Rows with two threads will say little about a library"
    ]


def advice_for(machine: dict[str, Any]) -> list[str]:
    """What makes timings restless here. Nothing is changed: that is the user's decision."""
    advice = []
    if machine.get("governor") not in (None, "performance"):
        advice.append(
            f"the frequency governor is '{machine['governor']}': clocks will wander "
            "(sudo cpupower frequency-set -g performance)"
        )
    if machine["usable_cpus"] == 1:
        advice.append("one CPU: experiments with two threads have rows that are unavailable")
    if machine["load_1min"] > 0.5:
        advice.append(
            f"the load is {machine['load_1min']:.1f}: other programs are running, and will be measured too"
        )
    quota = machine.get("cpu_quota")
    if quota is not None:
        advice.append(f"a quota allows {quota:.1f} CPUs: above it the kernel pauses contenders")
    return advice
