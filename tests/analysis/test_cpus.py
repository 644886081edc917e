"""Threads that are busy to no use: told from working ones by the step time, where the kernel cannot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from timetrial.analysis.cpus import idle_threads


def row(threads: str, step_ms: float | None, cpus: float | None, **axes: Any) -> Any:
    settings = {"threads": threads, **({"affinity": axes.pop("affinity")} if "affinity" in axes else {})}
    case = SimpleNamespace(
        backend="pool",
        who="pool",
        batch_size=64,
        axes={"threads": threads, "network": "mlp", **axes},
        settings=settings,
    )
    step = None if step_ms is None else SimpleNamespace(estimate=1e6 * step_ms)
    return SimpleNamespace(case=case, step_time_ns=step, cpus_used=cpus)


def test_a_pool_that_spins_is_named() -> None:
    (said,) = idle_threads([row("1", 10.0, 1.0), row("2", 10.1, 2.0)])
    assert said.startswith("pool with 2 threads uses 2.0 CPUs and takes 1.01 times as long as with one")


@pytest.mark.parametrize(
    "other",
    [
        row("2", 6.0, 2.0),  # it gains
        row("2", 9.6, 2.0),  # a little
        row("2", 10.1, 1.2),  # no gain, and hardly busy: `adjusted` says that
        row("2", None, 2.0),  # not measured
        row("2", 10.1, None),  # an old record
        row("2", 10.1, 2.0, network="lenet5"),  # other work
        row("2", 10.1, 2.0, affinity="0-1"),  # other settings
    ],
)
def test_others_are_not(other: Any) -> None:
    assert idle_threads([row("1", 10.0, 1.0), other]) == []


def test_one_thread_alone_says_nothing() -> None:
    assert idle_threads([row("1", 10.0, 1.9)]) == []
    assert idle_threads([row("2", 10.0, 2.0)]) == []
