"""Races with a known answer: equal sides, and sides of which one does 5 % more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from timetrial.experiment.engine import Engine
from timetrial.statistics.verdict import Verdict

if TYPE_CHECKING:
    from timetrial.launch import Course, Heat, LaunchPlan

Words = tuple[str, ...]
Disturbed = Callable[[Engine], tuple[Engine, Callable[[], None]]]  # the engine, and what ends the disturbance


@dataclass(frozen=True)
class Check:
    """A race and the verdicts that would be right."""

    name: str
    sides: tuple[dict[str, Any], ...]
    effect: float  # the truth, a fraction
    quick: int  # races in the three-minute check
    full: int  # in the two-hour one
    threads: int = 1
    disturbed: Disturbed | None = None

    @property
    def is_equal(self) -> bool:
        """Whether the sides are the same."""
        return self.effect == 0

    def is_false(self, verdict: Verdict | None) -> bool:
        """A verdict that must not come: a difference between equals, or the wrong direction."""
        return verdict in (("better", "worse") if self.is_equal else ("better", "same"))


# Its input ends with us, however we end: nothing may spin on.
_SPIN = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True: pass
"""


def with_stressor(engine: Engine, after_pairs: int = 3) -> tuple[Engine, Callable[[], None]]:
    """From this pair on other programs keep every processor busy."""
    calls = 0
    busy: list[subprocess.Popen[bytes]] = []

    def heat(plans: Sequence[LaunchPlan], course: Course) -> Heat:
        nonlocal calls
        calls += 1
        if calls > after_pairs and not busy:
            spin = [sys.executable, "-c", _SPIN]
            busy.extend(
                subprocess.Popen(
                    spin, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
                )
                for _ in os.sched_getaffinity(0)
            )
        return engine.heat(plans, course)

    def end() -> None:
        for process in busy:
            process.kill()
            process.communicate()

    return replace(engine, heat=heat), end


def with_other_environment(engine: Engine) -> tuple[Engine, Callable[[], None]]:
    """The first side always has a small environment, the second a large one."""

    def heat(plans: Sequence[LaunchPlan], course: Course) -> Heat:
        padded = [
            replace(plan, environment={**plan.environment, "TIMETRIAL_PADDING": "x" * (side * 8000)})
            for side, plan in enumerate(plans)
        ]
        return engine.heat(padded, course)

    return replace(engine, heat=heat), lambda: None


def _work(units: int) -> dict[str, Any]:
    return {"backend": "null", "network": "mlp", "null.work_units": units}


def _own(name: str, module: str = "steps") -> dict[str, Any]:
    return {"callable": f"timetrial.selfcheck.{module}:{name}"}


_NATIVE = {"network": "mlp"}

# 20 work units are about 20 us, 900 about 1 ms. 22 to 25: numbers of acceptance tests, docs/statistics.md.
CHECKS = (
    Check("22 equal steps", (_work(20), _work(20)), 0.0, quick=5, full=200),
    Check("22 equal steps of 1 ms", (_work(900), _work(900)), 0.0, quick=3, full=60),
    Check(
        "22 equal, OpenBLAS, 2 threads",
        ({"backend": "cblas", "parallel": "product", **_NATIVE},) * 2,
        0.0, quick=2, full=60, threads=2,
    ),
    Check(
        "22 equal, OpenMP, 2 threads",
        ({"backend": "onednn", **_NATIVE},) * 2,
        0.0, quick=2, full=60, threads=2,
    ),
    Check(
        "22 equal, LeNet-5, steps of 10 ms and more",
        ({"backend": "eigen", "network": "lenet5", "batch_size": 128},) * 2,
        0.0, quick=1, full=40,
    ),
    Check("23 5 % more work", (_work(20), _work(21)), 0.05, quick=5, full=120),
    Check("23 5 % more work, 1 ms", (_work(900), _work(945)), 0.05, quick=2, full=40),
    Check(
        "23 5 % more products, OpenBLAS, 2 threads",
        (_own("products_20"), _own("products_21")),
        0.05, quick=1, full=40, threads=2,
    ),
    Check(
        "23 5 % more updates of LeNet-5, steps of 10 ms and more",
        (_own("updates_20", "training"), _own("updates_21", "training")),
        0.05, quick=1, full=40,
    ),
    Check(
        "24 equal, disturbed from pair 4 on",
        (_work(20), _work(20)),
        0.0, quick=2, full=60, disturbed=with_stressor,
    ),
    Check(
        "25 equal, other environment size",
        (_work(20), _work(20)),
        0.0, quick=1, full=30, disturbed=with_other_environment,
    ),
)  # fmt: skip
