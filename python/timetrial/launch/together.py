"""Launches that are alive together: in turns, where they are timed; at will, where they are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as FuturesTimeoutError
from dataclasses import replace
from functools import partial

from timetrial.heats.heat import Course, Heat, OutOfTimeError, SeatedLaunch
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.run import run_launch
from timetrial.processes.own_memory import give_back_freed
from timetrial.proof.judge import forget_judges
from timetrial.records.model import LaunchRecord
from timetrial.stopping import shielded


def launch_together(
    plans: Sequence[LaunchPlan],
    at_once: int,
    done: Callable[[LaunchRecord], None],
    left_s: float | None = None,
) -> list[LaunchRecord]:
    """Each plan once, with `at_once` contenders alive at a time; while one is judged, the next is there
    already. `done` is called as they end, in the caller's thread. Raises what run_launch() raises,
    KeyboardInterrupt on Ctrl-C, and OutOfTimeError after `left_s`; then nothing is left running."""
    cancel = threading.Event()
    alive = threading.Semaphore(at_once)
    futures: list[Future[LaunchRecord]] = []
    pool = ThreadPoolExecutor(at_once + 1, thread_name_prefix="launch")
    try:
        for plan in plans:
            launch = partial(run_launch, replace(plan, at_once=at_once), cancel=cancel, alive=alive)
            futures.append(pool.submit(launch))
        for future in _in_time(as_completed(futures, None if left_s is None else max(0.0, left_s))):
            done(future.result())
        return [future.result() for future in futures]
    finally:
        _end(pool, cancel)


def _in_time(ended: Iterator[Future[LaunchRecord]]) -> Iterator[Future[LaunchRecord]]:
    """As they come; what a launch raises is not meant here."""
    while True:
        try:
            future = next(ended)
        except StopIteration:
            return
        except FuturesTimeoutError:
            raise OutOfTimeError from None
        yield future


@shielded
def _end(pool: ThreadPoolExecutor, cancel: threading.Event) -> None:
    """Behind the last launch, or instead of those that are left."""
    cancel.set()
    pool.shutdown(cancel_futures=True)
    _forget()


def heat_launches(plans: Sequence[LaunchPlan], course: Course) -> Heat:
    """One launch of each plan, alive together, taking turns; returns behind the last round, and its records()
    come when all have ended. Raises as run_launch() does."""

    def seated(plan: LaunchPlan) -> SeatedLaunch:
        return lambda seat, cancel: run_launch(plan, cancel=cancel, seat=seat)

    return Heat([seated(plan) for plan in plans], course, ended=_forget).run()


def _forget() -> None:
    """Behind launches: their judges' memory is there for the next."""
    forget_judges()
    give_back_freed()
