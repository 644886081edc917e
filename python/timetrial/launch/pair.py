"""A pair of launches, or a group: alive together, taking turns, and whoever waits is stopped.

Each side is an ordinary launch in a thread of its own, with every check, outcome and record of a launch. It
holds a seat. Whoever has the turn runs; the others wait in `Seat.wait()`, their contenders stopped by the
kernel. First each side starts and warms up, one after the other; then come the rounds; then each ends.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from timetrial.launch.decisions import segment_steps
from timetrial.records.model import LaunchRecord

Round = tuple[int, ...]  # each side once, in the order in which they run


def schedule(sides: int, rounds: int, rng: random.Random) -> list[Round]:
    """Two sides: ABBA or BAAB, by a coin for each block of two rounds. More: the rows of a cyclic Latin
    square in random order for each block of as many rounds: each is first, second, ... equally often."""
    order: list[Round] = []
    while len(order) < rounds:
        names = list(range(sides))
        rng.shuffle(names)
        shifts = list(range(sides))
        rng.shuffle(shifts)
        order += [tuple(names[shift:] + names[:shift]) for shift in shifts]
    return order[:rounds]


class Seat:
    """A side's place. The launch's thread calls wait(); everything else is the pair's."""

    def __init__(self, cancel: threading.Event):
        self._cancel = cancel
        self._orders: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._reports: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self.left = False

    def wait(self, step_ns: float) -> int | None:
        """Gives the turn back, with what a step takes, and waits for the next: how many steps to run; None:
        the race is over, the launch may end."""
        self._reports.put(step_ns)
        return self._next()

    def _next(self) -> int | None:
        steps = self._orders.get()
        if self._cancel.is_set():
            raise KeyboardInterrupt
        return steps

    def enter(self, launch: Callable[[], LaunchRecord]) -> LaunchRecord:
        """In the launch's thread: from its first turn to its end."""
        try:
            self._next()
            return launch()
        finally:
            self._reports.put(None)

    def take_turn(self, steps: int | None) -> float | None:
        """In the pair's thread: one turn of this side; what a step takes, or None if it has left."""
        if self.left:
            return None
        self._orders.put(steps)
        step_ns = self._reports.get()
        self.left = step_ns is None
        return step_ns

    def release(self) -> None:
        """After `cancel` was set: its launch ends, wherever it waits."""
        self._orders.put(None)


@dataclass(frozen=True)
class Pair:
    """What came of it: a record per side, and the order of the rounds that were run by all."""

    records: list[LaunchRecord]
    rounds: list[Round]


SeatedLaunch = Callable[[Seat, threading.Event], LaunchRecord]  # the event ends it


def run_pair(launches: Sequence[SeatedLaunch], rounds: Sequence[Round]) -> Pair:
    """Runs the launches together. A side that fails ends the pair: the others have their records as well.

    Raises what a launch raises, and KeyboardInterrupt on Ctrl-C; then nothing is left running.
    """
    cancel = threading.Event()
    seats = [Seat(cancel) for _ in launches]
    with ThreadPoolExecutor(len(launches), thread_name_prefix="side") as pool:
        futures: list[Future[LaunchRecord]] = [
            pool.submit(seat.enter, partial(launch, seat, cancel))
            for launch, seat in zip(launches, seats, strict=True)
        ]
        try:
            done = _take_turns(seats, rounds)
        except BaseException:
            cancel.set()
            for seat in seats:
                seat.release()
            raise
    return Pair([future.result() for future in futures], done)


def _take_turns(seats: Sequence[Seat], rounds: Sequence[Round]) -> list[Round]:
    done: list[Round] = []
    # Who starts first is chance, as everything that could favor a side.
    warm = {side: seats[side].take_turn(None) for side in rounds[0]}
    if all(step_ns is not None for step_ns in warm.values()):
        steps = segment_steps(min(step_ns for step_ns in warm.values() if step_ns is not None))
        for order in rounds:
            if any(seats[side].take_turn(steps) is None for side in order):
                break
            done.append(order)
    for seat in seats:
        seat.take_turn(None)
    return done
