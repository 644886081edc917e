"""A heat: launches that are alive together and take turns, while whoever waits is stopped.

Each is an ordinary launch in a thread of its own, with every check, outcome and record of a launch. It holds
a seat. Whoever has the turn runs; the others wait in `Seat.wait()`, their contenders stopped by the kernel.
First all start, some of them side by side, then those who choose between kernels by the clock as they start,
one after the other; then each warms up; then come the rounds; then all end, and the caller may go on with
something that is not timed while they do. A race is a heat whose sides take equal steps.
"""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

from timetrial.core.recorder import MAX_SEGMENT_STEPS
from timetrial.heats.lengths import (
    FEWEST_ROUNDS,
    LONGEST_SPAN_NS,
    RACE_TURN_NS,
    REPEATS_IN_A_ROUND,
    equal_steps,
    may_be_longer,
    repeats_of,
    rides_of,
    rides_round,
    turn_steps,
)
from timetrial.records.model import LaunchRecord
from timetrial.statistics.rhythm import common_span
from timetrial.stopping import shielded

Waited = TypeVar("Waited")
Round = tuple[int, ...]  # each contender once, in the order in which they run
Processors = frozenset[int] | None  # on which someone starts; None: those on which he rides


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


def lengthened(rounds: int, block: int, rng: random.Random) -> list[bool]:
    """By round, whether short turns take a step more: a coin for each block of so many rounds."""
    coins = [rng.random() < 0.5 for _ in range(rounds // block + 1)]
    return [coins[number // block] for number in range(rounds)]


@dataclass(frozen=True)
class Ride:
    """One turn: how many steps, and in which round."""

    steps: int
    round: int


@dataclass(frozen=True)
class Report:
    """At the end of a turn, or of the warm-up: what a step took, on average over the turn, and whether others
    took the processors. Behind a warm-up also over how many steps its time repeats, and what goes on while it
    is stopped, in words."""

    step_ns: float
    disturbed: bool = False
    span: int = 1
    goes_on: str | None = None


class OutOfTimeError(Exception):
    """A heat reached its deadline; nothing of it is left running."""


def _within(deadline: float | None, waiting: queue.SimpleQueue[Waited]) -> Waited:
    """What comes out of a queue. OutOfTimeError: nothing did before the deadline."""
    try:
        return waiting.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        raise OutOfTimeError from None


class Seat:
    """A contender's place. The launch's thread calls wait(); everything else is the heat's."""

    def __init__(
        self,
        cancel: threading.Event,
        started: queue.SimpleQueue[Processors],
        deadline: float | None = None,
    ):
        self._cancel = cancel
        self._deadline = deadline
        self._started = started  # gets `starts_on` when its launch has started, or has ended before
        self.starts_on: Processors = None
        self._has_started = False
        self._orders: queue.SimpleQueue[Ride | None] = queue.SimpleQueue()
        self._reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
        self.left = False
        self._error: BaseException | None = None

    def arrive(self) -> None:
        """Behind the first step: waits for the turn to warm up."""
        self._say_started()
        self._next()

    def _say_started(self) -> None:
        if not self._has_started:
            self._has_started = True
            self._started.put(self.starts_on)

    def wait(self, report: Report) -> Ride | None:
        """Gives the turn back and waits for the next; None: the rounds are over, the launch may end."""
        self._reports.put(report)
        return self._next()

    def _next(self) -> Ride | None:
        ride = self._orders.get()
        if self._cancel.is_set():
            raise KeyboardInterrupt
        return ride

    def enter(self, launch: Callable[[], LaunchRecord]) -> LaunchRecord:
        """In the launch's thread: from its start to its end."""
        try:
            self._next()
            return launch()
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._say_started()
            self._reports.put(None)

    def start(self, on: Processors) -> None:
        """In the heat's thread: the launch begins, on these."""
        self.starts_on = on
        self._orders.put(None)

    def take_turn(self, ride: Ride | None) -> Report | None:
        """In the heat's thread: one turn, or the warm-up where there is no ride; None if the launch has
        ended. Raises what the launch raised."""
        if self.left:
            return None
        self._orders.put(ride)
        report = _within(self._deadline, self._reports)
        self.left = report is None
        self.raise_error()
        return report

    def raise_error(self) -> None:
        """What the launch raised, if it did."""
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """The rounds are over: lets it end, and waits for that. Raises what the launch raised."""
        if not self.left:
            self._orders.put(None)
        while not self.left:
            self.left = self._reports.get() is None
        self.raise_error()

    def release(self) -> None:
        """After `cancel` was set: its launch ends, wherever it waits."""
        self._orders.put(None)


@dataclass(frozen=True)
class Ridden:
    """The rounds of a heat so far."""

    start_s: float  # from the beginning of the heat to its first round
    rounds_s: float  # of all rounds together, hand-over included
    # By round: what a step of each contender that rode took, on average over its turn.
    step_ns: Sequence[Mapping[int, float]]
    spans: Mapping[int, int] = field(default_factory=dict)  # by contender, that its turns are multiples of
    goes_on: Mapping[int, str] = field(default_factory=dict)  # by contender what goes on while it is stopped


@dataclass(frozen=True)
class Course:
    """What a heat does: its rounds, and for how long each contender may ride.

    `budget_ns`: of a contender's turns in the first rounds, and in each further block of as many; who needs
    longer for a turn in each round rides in fewer of them. None: a race. All sides take the same number of
    steps, as many as the fastest needs, and the failure of one ends it for all.
    """

    rounds: Sequence[Round]
    budget_ns: int | None = None
    starts_on: tuple[Processors, ...] = (None,)  # of those who start side by side: each on one of these
    alone: frozenset[int] = frozenset()  # sides that start with nobody beside them: they time something then
    # How many of the rounds it takes: asked behind the `first` ones, and again when those that were wanted
    # are over; as many as were ridden, or fewer: it ends. None: it takes the first ones.
    wanted: Callable[[Ridden], int] | None = None
    first: int | None = None
    # Called when all have started, before the first one warms up: what went on beside the starts ends now.
    started: Callable[[], None] = lambda: None
    # By contender: steps over which the time of a step repeats, as far as earlier heats tell.
    spans: Mapping[int, int] = field(default_factory=dict)
    turn_ns: int = RACE_TURN_NS  # of a race, the shortest turn of more than a step
    deadline: float | None = None  # on time.monotonic(): OutOfTimeError is raised then
    longer: Sequence[bool] = ()  # by round, whether short turns take a step more

    @property
    def block(self) -> int:
        """Rounds before it is asked for the first time."""
        return self.first or len(self.rounds)

    @property
    def is_race(self) -> bool:
        """Whether all take equal steps and end together."""
        return self.budget_ns is None

    def turn_spans(self, warm: Mapping[int, Report]) -> dict[int, int]:
        """For each that is there, of how many steps its turns are whole multiples; in a race the same."""
        known = {side: max(self.spans.get(side, 1), report.span) for side, report in warm.items()}
        if self.is_race:
            slowest = max(report.step_ns for report in warm.values())
            return dict.fromkeys(known, common_span([*known.values()], _longest_span(slowest)))
        return {side: common_span([span], _longest_span(warm[side].step_ns)) for side, span in known.items()}

    def steps(self, step_ns: Mapping[int, float], spans: Mapping[int, int]) -> dict[int, int]:
        """Of a turn, for each that is there."""
        if self.is_race:
            span = max(spans.values())
            return dict.fromkeys(step_ns, equal_steps(min(step_ns.values()), span, self.turn_ns))
        return {side: turn_steps(ns, spans[side]) for side, ns in step_ns.items()}

    def more(self, number: int, steps: int, span: int) -> int:
        """Steps that a turn of this round has beyond `steps`."""
        return int(number < len(self.longer) and self.longer[number] and may_be_longer(steps, span))

    def rides(self, turn_ns: float) -> int:
        """In how many rounds of a block someone with turns of this length rides."""
        return self.block if self.budget_ns is None else rides_of(turn_ns, self.block, self.budget_ns)


SeatedLaunch = Callable[[Seat, threading.Event], LaunchRecord]  # the event ends it


@dataclass(eq=False)
class Heat:
    """Launches that run together. `run()` returns behind the last round, `records()` when all have ended.
    Both raise what a launch raises, and KeyboardInterrupt on Ctrl-C; run() also OutOfTimeError at the
    deadline of its course. Then nothing is left running."""

    launches: Sequence[SeatedLaunch]
    course: Course
    ended: Callable[[], None] = lambda: None  # called behind the end of the last launch, however it ends
    ridden: Ridden | None = None  # behind the last round; None: there was none
    _cancel: threading.Event = field(default_factory=threading.Event)
    _seats: list[Seat] = field(default_factory=list)
    _futures: list[Future[LaunchRecord]] = field(default_factory=list)
    _ends: list[Future[None]] = field(default_factory=list)

    def run(self) -> Heat:
        """From the first start to the end of the last round; returns itself. All end then, as many at once
        as there are processors: what comes behind the rounds is judged, not timed."""
        began = time.monotonic()
        started: queue.SimpleQueue[Processors] = queue.SimpleQueue()
        self._seats = [Seat(self._cancel, started, self.course.deadline) for _ in self.launches]
        self._pool = ThreadPoolExecutor(len(self.launches), thread_name_prefix="seat")
        self._end_pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="end")
        course, seats = self.course, self._seats
        _under_way.add(self)
        try:
            for launch, seat in zip(self.launches, seats, strict=True):
                self._futures.append(self._pool.submit(seat.enter, partial(launch, seat, self._cancel)))
            # Who starts first is chance, as everything that could favor someone, as far as it may be.
            order = course.rounds[0]
            alone = course.alone if len(course.starts_on) > 1 else frozenset[int]()
            _start(
                [seats[side] for side in order if side not in alone],
                started,
                course.starts_on,
                course.deadline,
            )
            _start([seats[side] for side in order if side in alone], started, (None,), course.deadline)
            course.started()
            self.ridden = _take_turns(seats, course, began)
            self._ends = [self._end_pool.submit(seat.end) for seat in seats]
        except BaseException:
            self.cancel()
            raise
        return self

    def records(self) -> list[LaunchRecord]:
        """A record for each launch, in their order; one that failed has one as well, and the others went on
        (in a race they end, too)."""
        if self._cancel.is_set():  # and nobody waits for what will not end any more
            raise KeyboardInterrupt
        try:
            for end in as_completed(self._ends):
                end.result()
            found = [future.result() for future in self._futures]
        except BaseException:
            self.cancel()
            raise
        self._close()
        return found

    @shielded
    def cancel(self) -> None:
        """Ends every launch, wherever it is, and waits until nothing is left of them."""
        self._cancel.set()
        for seat in self._seats:
            seat.release()
        self._close()

    def _close(self) -> None:
        self._end_pool.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(wait=True)
        self.ended()
        _under_way.discard(self)


_under_way: set[Heat] = set()  # whose launches have not all ended


def end_heats() -> None:
    """Those that are under way: an interrupt may have come before whoever began one had it."""
    for heat in list(_under_way):
        heat.cancel()


def _start(
    seats: Sequence[Seat],
    started: queue.SimpleQueue[Processors],
    starts_on: Sequence[Processors],
    deadline: float | None,
) -> None:
    waiting = iter(seats)
    for on, seat in zip(starts_on, waiting, strict=False):  # in this order: no seat is lost
        seat.start(on)
    for _ in seats:
        free = _within(deadline, started)
        for seat in seats:
            seat.raise_error()
        for seat in islice(waiting, 1):
            seat.start(free)


def _take_turns(seats: Sequence[Seat], course: Course, began: float) -> Ridden | None:
    warm = {side: seats[side].take_turn(None) for side in course.rounds[0]}
    there = {side: report for side, report in warm.items() if report is not None}
    if not there or (course.is_race and len(there) < len(seats)):
        return None
    return _run_rounds(seats, course, there, began)


def _longest_span(step_ns: float) -> int:
    return min(MAX_SEGMENT_STEPS // 2, int(LONGEST_SPAN_NS / step_ns))


def _is_late(course: Course, steps: Mapping[int, int], step_ns: Mapping[int, float]) -> bool:
    """Whether another round would end behind the deadline."""
    round_s = sum(steps[side] * ns for side, ns in step_ns.items()) / 1e9
    return course.deadline is not None and time.monotonic() + round_s > course.deadline


def _run_rounds(seats: Sequence[Seat], course: Course, warm: Mapping[int, Report], began: float) -> Ridden:
    step_ns = {side: report.step_ns for side, report in warm.items()}
    goes_on = {side: report.goes_on for side, report in warm.items() if report.goes_on}
    spans = course.turn_spans(warm)
    steps = course.steps(step_ns, spans)
    rides = {side: course.rides(steps[side] * ns) for side, ns in step_ns.items()}
    repeats = dict.fromkeys(step_ns, 0)
    first = time.monotonic()
    seen: list[dict[int, float]] = []

    def ridden() -> Ridden:
        return Ridden(first - began, time.monotonic() - first, seen, spans, goes_on)

    wanted, again = course.block, 0
    if goes_on and len(seats) > 1:
        return ridden()  # turns would be unfair
    for number, order in enumerate(course.rounds):
        if number == wanted and course.wanted is not None:
            asked = course.wanted(ridden())
            wanted = asked + again if asked > number else number
        if number >= wanted:
            break
        if number >= FEWEST_ROUNDS and _is_late(course, steps, step_ns):
            break
        if number % course.block == 0 and not course.is_race:
            repeats = {side: left + repeats_of(course.block) for side, left in repeats.items()}
        seen.append({})
        disturbed = False
        for side in order:
            if side not in steps or not rides_round(number % course.block, rides[side], course.block):
                continue
            ride = Ride(steps[side] + course.more(number, steps[side], spans[side]), number)
            report = seats[side].take_turn(ride)
            for _ in range(min(repeats[side], REPEATS_IN_A_ROUND)):
                if report is None or not report.disturbed:
                    break
                repeats[side] -= 1
                report = seats[side].take_turn(ride)
            if report is not None:
                seen[-1][side] = report.step_ns
                disturbed |= report.disturbed
            elif course.is_race:
                return ridden()
        if course.is_race and disturbed and again < repeats_of(number + 1):
            again, wanted = again + 1, wanted + 1  # for both sides, who take the same steps
    return ridden()
