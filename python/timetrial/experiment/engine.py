"""What the runner needs from the rest of timetrial, as functions: tests put others in their place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from timetrial.cases.case import Case, Workload
from timetrial.proving.keeper import Keeper, KeepsNone
from timetrial.records.model import LaunchRecord
from timetrial.stopping import stopped_like_ctrl_c

if TYPE_CHECKING:
    from timetrial.contenders import Contender
    from timetrial.launch import Course, Heat, LaunchPlan
    from timetrial.workloads import Checked, Prepared


@dataclass(frozen=True)
class Engine:
    """Each raises InputError for what the user got wrong and Unavailable for what this machine lacks."""

    resolve: Callable[[Case], Contender]
    validate_settings: Callable[[Case, Contender, Collection[str]], None]
    check: Callable[[Workload], Checked]
    prepare: Callable[[Workload, int, int, bool], Prepared]  # workload, seed, epochs, reads_data
    launch: Callable[[LaunchPlan], LaunchRecord]
    heat: Callable[[Sequence[LaunchPlan], Course], Heat]  # alive together, taking turns; behind the last one
    # At once so many, with nothing timed; each record is told as it comes. At most so many seconds.
    together: Callable[
        [Sequence[LaunchPlan], int, Callable[[LaunchRecord], None], float | None], list[LaunchRecord]
    ]
    lock: Callable[[], AbstractContextManager[Any]]
    machine: Callable[[], dict[str, Any]]
    peak_flops: Callable[[int], float]  # of n threads, measured
    memory_bandwidth: Callable[[int], float]  # of n threads, measured: bytes per second
    cache_bandwidth: Callable[[int], float]  # the same of their second caches
    free_bytes: Callable[[], int]  # of memory
    harness: Callable[[], dict[str, float]]  # what the instrument itself costs
    keeper: Keeper = field(default_factory=KeepsNone)  # of proofs, from run to run

    def proving_again(self) -> Engine:
        """The same, for which no proof of an earlier run counts."""
        return replace(self, keeper=self.keeper.anew())


@contextmanager
def _only_one() -> Iterator[None]:
    """While something is measured: by nobody else, and no signal leaves the lock behind."""
    from timetrial.launch import MeasurementLock

    with stopped_like_ctrl_c(), MeasurementLock():
        yield


def real_engine() -> Engine:
    """timetrial itself. Imported here, late: it needs the compiled core."""
    from timetrial import contenders, core, launch, workloads
    from timetrial.core import cpu
    from timetrial.experiment.machine import machine_facts
    from timetrial.experiment.memory import available_bytes
    from timetrial.proving.keeping import real_keeper

    return Engine(
        resolve=contenders.resolve,
        validate_settings=lambda case, contender, spanned: contenders.validate_settings(
            case, contender, spanned=spanned
        ),
        check=workloads.check,
        prepare=lambda workload, seed, epochs, reads_data: workloads.prepare(
            workload, seed=seed, epochs=epochs, reads_data=reads_data
        ),
        launch=launch.run_launch,
        heat=launch.heat_launches,
        together=launch.launch_together,
        lock=_only_one,
        machine=machine_facts,
        # A second: long enough to find a moment in which no neighbor disturbs.
        peak_flops=lambda threads: cpu.measure_peak_flops(threads, seconds=1.0).flops_per_s,
        memory_bandwidth=lambda threads: cpu.measure_memory_bandwidth(threads).bytes_per_s,
        cache_bandwidth=lambda threads: cpu.measure_cache_bandwidth(threads).bytes_per_s,
        free_bytes=available_bytes,
        harness=lambda: {"clock_ns": core.clock_cost_ns()},
        keeper=real_keeper(),
    )
