"""Who rides when, with scripted launches: the rounds go on without whoever fails, and starve nobody."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from timetrial.heats.heat import Heat, OutOfTimeError, Processors, Report, Ridden, Seat
from timetrial.heats.lengths import (
    FEWEST_RIDES,
    FEWEST_TURN_STEPS,
    TURN_NS,
    cold_steps,
    repeats_of,
    rides_round,
    turn_steps,
)
from timetrial.launch import Course, Round

MS = 1_000_000
SECOND = 1_000 * MS
ROUNDS: list[Round] = [(0, 1, 2), (2, 0, 1)] * 5


def run_heat(launches: list[Any], course: Course) -> list[Any]:
    return Heat(launches, course).run().records()


class Rider:
    """A launch with steps of a given length. `ends_in`: the round in which it is gone."""

    def __init__(
        self, step_ns: float, *, ends_in: int = 99, disturbed: Callable[[int], bool] = lambda _: False
    ):
        self.step_ns, self.ends_in, self.disturbed = step_ns, ends_in, disturbed
        self.rides: list[tuple[int, int]] = []  # round and steps

    def __call__(self, seat: Seat, cancel: threading.Event) -> Any:
        if self.ends_in < 0:
            return self
        seat.arrive()
        report = Report(self.step_ns)
        while (ride := seat.wait(report)) is not None:
            if ride.round >= self.ends_in:
                return self
            self.rides.append((ride.round, ride.steps))
            report = Report(self.step_ns, disturbed=self.disturbed(len(self.rides)))
        return self

    @property
    def rounds(self) -> list[int]:
        return [number for number, _ in self.rides]


def heat(*riders: Rider, budget_ns: int | None = SECOND, rounds: list[Round] = ROUNDS) -> Any:
    return run_heat(list(riders), Course(rounds, budget_ns))


class Starts:
    """How many start at one moment, and how many did at most."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, change: int) -> None:
        with self._lock:
            self.now += change
            self.most = max(self.most, self.now)


def starter(starts: Starts, *, fails: bool) -> Any:
    """A launch that starts for a while and, unless it `fails`, finds at its warm-up that nobody else does."""

    def launch(seat: Seat, cancel: threading.Event) -> Any:
        starts(+1)
        time.sleep(0.02)
        starts(-1)
        if not fails:
            seat.arrive()
            found.append(starts.now)
            while seat.wait(Report(MS)) is not None:
                pass
        return found

    found: list[int] = []
    return launch


@pytest.mark.parametrize(("starts", "fails"), [(1, 0), (2, 0), (2, 3)])
def test_so_many_start_side_by_side_and_nobody_warms_up_meanwhile(starts: int, fails: int) -> None:
    seen = Starts()
    launches = [starter(seen, fails=number < fails) for number in range(5)]
    done: Any = run_heat(launches, Course([(4, 2, 0, 1, 3)], SECOND, starts_on=(None,) * starts))
    assert done == [[]] * fails + [[0]] * (5 - fails)
    assert seen.most == starts


def test_who_times_something_starts_behind_the_others_and_alone() -> None:
    """Side by side, oneDNN's trials of two threads chose kernels that were a third slower."""
    now: set[int] = set()
    beside: dict[int, set[int]] = {}
    two = threading.Barrier(2, timeout=30)

    def launch(number: int) -> Any:
        def starts(seat: Seat, cancel: threading.Event) -> Any:
            now.add(number)
            if number in (2, 1):  # whose turn to start comes first: both are there
                two.wait()
            beside[number] = set(now)
            now.discard(number)
            return number

        return starts

    course = Course([(4, 2, 0, 1, 3)], SECOND, starts_on=(None, None), alone=frozenset({0, 4}))
    assert run_heat([launch(number) for number in range(5)], course) == list(range(5))
    assert [*beside][3:] == [4, 0]
    assert [beside[number] for number in (4, 0)] == [{4}, {0}]


@pytest.mark.parametrize("arrives", [True, False])
def test_nobody_starts_where_another_still_does(arrives: bool) -> None:
    """Neither behind those who wait for their turns nor behind those who ended as they started."""
    on = frozenset({0}), frozenset({1}), None
    now: list[Processors] = []
    seen: dict[int, Processors] = {}
    lock = threading.Lock()

    def launch(number: int) -> Any:
        def starts(seat: Seat, cancel: threading.Event) -> Any:
            with lock:
                assert seat.starts_on not in now
                now.append(seat.starts_on)
                seen[number] = seat.starts_on
            time.sleep(0.001 * (1 + number % 3))
            with lock:
                now.remove(seat.starts_on)
            if arrives:
                seat.arrive()
                while seat.wait(Report(MS)) is not None:
                    pass
            return number

        return starts

    order = tuple(range(12))
    course = Course([order], SECOND, starts_on=on, alone=frozenset({10, 11}))
    assert run_heat([launch(number) for number in order], course) == [*order]
    assert {seen[number] for number in range(10)} == {*on}
    assert [seen[number] for number in (10, 11)] == [None, None]


def test_each_rides_once_in_each_round_for_as_long_as_the_others() -> None:
    riders = Rider(MS), Rider(7 * MS), Rider(0.5 * MS)
    done = heat(*riders)
    assert done == list(riders)
    assert [rider.rounds for rider in riders] == [list(range(10))] * 3
    assert [rider.rides[0][1] for rider in riders] == [35, 5, 70]


@pytest.mark.parametrize("ends_in", [-1, 0, 3])
def test_the_others_go_on_without_one_that_fails(ends_in: int) -> None:
    riders = Rider(MS), Rider(MS, ends_in=ends_in), Rider(MS)
    done = heat(*riders)
    assert done == list(riders)
    assert [rider.rounds for rider in riders] == [
        list(range(10)),
        list(range(max(ends_in, 0))),
        list(range(10)),
    ]


def test_a_race_ends_with_the_first_that_fails_and_has_equal_steps() -> None:
    riders = Rider(MS), Rider(9 * MS, ends_in=3), Rider(2 * MS)
    heat(*riders, budget_ns=None)
    assert [rider.rounds for rider in riders] == [[0, 1, 2, 3], [0, 1, 2], [0, 1, 2, 3]]
    assert {steps for rider in riders for _, steps in rider.rides} == {20}
    riders = Rider(MS), Rider(MS, ends_in=-1), Rider(MS)
    heat(*riders, budget_ns=None)
    assert not riders[0].rides


def test_nobody_is_left_and_the_rounds_end() -> None:
    riders = Rider(MS, ends_in=2), Rider(MS, ends_in=1), Rider(MS, ends_in=0)
    assert heat(*riders) == list(riders)
    assert [rider.rounds for rider in riders] == [[0, 1], [0], []]


def test_one_that_is_a_thousand_times_slower_rides_in_few_rounds() -> None:
    riders = Rider(MS), Rider(1_000 * MS), Rider(MS)
    heat(*riders)
    assert riders[1].rides == [(3, 1), (6, 1), (9, 1)]  # FEWEST_RIDES, and steps so long that one is a turn
    assert len(riders[1].rides) == FEWEST_RIDES
    assert riders[0].rounds == riders[2].rounds == list(range(10))


def test_a_slow_one_rides_for_its_budget() -> None:
    slow = Rider(100 * MS)
    heat(Rider(MS), slow, Rider(MS))
    assert [steps for _, steps in slow.rides] == [2] * 5  # of 200 ms in a second
    assert slow.rounds == [1, 3, 5, 7, 9]


def test_a_disturbed_turn_is_taken_again_at_once_within_a_budget() -> None:
    once = Rider(MS, disturbed=lambda turns: turns == 4)
    always = Rider(MS, disturbed=lambda _: True)
    heat(once, always, Rider(MS))
    assert once.rounds == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]
    assert len(always.rides) == len(ROUNDS) + repeats_of(len(ROUNDS)) == 13
    assert set(always.rounds) == set(range(10))


def test_turns_are_as_short_as_the_machine_allows() -> None:
    for step_ns in (100.0, 1e3, 1e5, 2.4e6, 8e6):
        steps = turn_steps(step_ns)
        assert steps * step_ns >= TURN_NS or steps == 65_535
        assert steps == FEWEST_TURN_STEPS or (steps - 1) * step_ns < TURN_NS
    assert [turn_steps(ms * MS) for ms in (20, 60, 70, 100, 300, 999, 1000)] == [4, 4, 3, 2, 2, 2, 1]


def test_rides_are_spread_over_the_rounds() -> None:
    for rides in range(1, 21):
        ridden = [number for number in range(20) if rides_round(number, rides, 20)]
        assert len(ridden) == rides
        gaps = {later - earlier for earlier, later in itertools.pairwise(ridden)}
        assert len(gaps) <= 2


def test_what_a_launch_raises_ends_the_heat_at_once() -> None:
    cancelled = []

    def waits(seat: Seat, cancel: threading.Event) -> Any:
        try:
            seat.arrive()
            while seat.wait(Report(MS)) is not None:
                pass
        except KeyboardInterrupt:
            cancelled.append(cancel.is_set())
            raise

    def breaks(seat: Seat, cancel: threading.Event) -> Any:
        seat.arrive()
        for _ in range(3):
            seat.wait(Report(MS))
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_heat([waits, breaks, waits], Course(ROUNDS, SECOND))
    assert cancelled == [True, True]


def test_so_does_what_it_raises_as_it_starts() -> None:
    begun = []

    def waits(seat: Seat, cancel: threading.Event) -> Any:
        begun.append(seat)
        seat.arrive()

    def breaks(seat: Seat, cancel: threading.Event) -> Any:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_heat([waits, breaks, waits], Course([(0, 1, 2)], SECOND))
    assert len(begun) == 1


def test_what_it_raises_behind_the_rounds_ends_the_others_that_still_go_on() -> None:
    """Judging may take minutes: who is first in line is not waited for."""
    ended, ends = [], threading.Event()

    def goes_on(seat: Seat, cancel: threading.Event) -> Any:
        seat.arrive()
        while seat.wait(Report(MS)) is not None:
            pass
        ends.set()
        ended.append(cancel.wait(60))

    def breaks(seat: Seat, cancel: threading.Event) -> Any:
        seat.arrive()
        while seat.wait(Report(MS)) is not None:
            pass
        assert ends.wait(60)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_heat([goes_on, breaks], Course([(0, 1)], SECOND))
    assert ended == [True]


def test_behind_the_rounds_the_next_begins_as_soon_as_one_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more at a time than there are processors."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    others_ended, among, most = threading.Semaphore(0), [], []

    def launch(seat: Seat, cancel: threading.Event) -> Any:
        seat.arrive()
        while seat.wait(Report(MS)) is not None:
            pass
        among.append(seat)
        most.append(len(among))
        if len(most) == 1:  # waits for all others, one after the other
            for _ in range(3):
                assert others_ended.acquire(timeout=60)
        among.remove(seat)
        others_ended.release()

    run_heat([launch] * 4, Course([(0, 1, 2, 3)], SECOND))
    assert max(most) == 2


def waiting_to_end(may_end: threading.Event) -> Any:
    """A launch that goes on behind its rounds until it may end, or is cancelled."""

    def launch(seat: Seat, cancel: threading.Event) -> Any:
        seat.arrive()
        while seat.wait(Report(MS)) is not None:
            pass
        while not may_end.wait(0.01):
            if cancel.is_set():
                raise KeyboardInterrupt
        return "ended"

    return launch


def test_the_caller_goes_on_while_launches_end() -> None:
    may_end, over = threading.Event(), threading.Event()
    heat = Heat([waiting_to_end(may_end)] * 2, Course([(0, 1)] * 3), ended=over.set).run()
    assert not over.is_set()
    may_end.set()
    assert heat.records() == ["ended", "ended"]
    assert over.is_set()


def test_what_is_cancelled_behind_its_rounds_leaves_nothing() -> None:
    over = threading.Event()
    heat = Heat([waiting_to_end(threading.Event())] * 2, Course([(0, 1)] * 3), ended=over.set).run()
    heat.cancel()
    assert over.is_set()
    assert not [one for one in threading.enumerate() if one.name.startswith("seat")]


def test_a_heat_takes_as_many_rounds_as_are_wanted() -> None:
    """It asks behind the first ones, and again when those that were wanted are over."""
    asked: list[Ridden] = []

    def wanted(ridden: Ridden) -> int:
        asked.append(ridden)
        return {2: 4, 4: 7}.get(len(ridden.step_ns), 0)

    riders = Rider(MS), Rider(2 * MS)
    heat = Heat(list(riders), Course([(0, 1), (1, 0)] * 10, wanted=wanted, first=2)).run()
    heat.records()
    assert [rider.rounds for rider in riders] == [list(range(7))] * 2
    assert heat.ridden is not None
    assert len(heat.ridden.step_ns) == 7
    assert heat.ridden.step_ns[0] == {0: MS, 1: 2 * MS}
    assert all(one.start_s >= 0 and one.rounds_s >= 0 for one in asked)


def test_who_is_slow_rides_equally_often_in_each_block() -> None:
    """Turns of two steps of 125 ms; the budget of a block of four rounds has room for three of them."""
    slow, fast = Rider(125 * MS), Rider(MS)
    course = Course([(0, 1)] * 12, 750 * MS, wanted=lambda ridden: 8, first=4)
    Heat([slow, fast], course).run().records()
    first = [number for number in slow.rounds if number < 4]
    assert len(first) == 3
    assert slow.rounds == [*first, *(number + 4 for number in first)]
    assert fast.rounds == list(range(8))


def test_what_goes_on_beside_starts_ends_before_anyone_warms_up() -> None:
    log: list[str] = []

    def launch(seat: Seat, cancel: threading.Event) -> Any:
        log.append("start")
        seat.arrive()
        log.append("warm")
        while seat.wait(Report(MS)) is not None:
            pass

    course = Course([(0, 1)], started=lambda: log.append("started"))
    Heat([launch] * 2, course).run().records()
    assert log == ["start", "start", "started", "warm", "warm"]


def test_what_the_caller_raises_then_ends_them() -> None:
    def fails() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        Heat([Rider(MS), Rider(MS)], Course([(0, 1)], started=fails)).run()
    assert not [one for one in threading.enumerate() if one.name.startswith("seat")]


class Bursty(Rider):
    """One whose steps repeat after `span` of them, or beside which something goes on."""

    def __init__(self, step_ns: float, *, span: int = 1, goes_on: str | None = None):
        super().__init__(step_ns)
        self.warm = Report(step_ns, span=span, goes_on=goes_on)

    def __call__(self, seat: Seat, cancel: threading.Event) -> Any:
        seat.arrive()
        report = self.warm
        while (ride := seat.wait(report)) is not None:
            self.rides.append((ride.round, ride.steps))
            report = Report(self.step_ns)
        return self


def race(*riders: Rider, **course: Any) -> Heat:
    return Heat(list(riders), Course([(0, 1), (1, 0)] * 4, **course)).run()


def test_turns_of_a_race_are_whole_multiples_of_both_spans() -> None:
    sides = Bursty(2 * MS, span=4), Bursty(MS, span=6)
    ran = race(*sides)
    assert ran.ridden is not None
    assert set(ran.ridden.spans.values()) == {12}
    for side in ran.records():
        assert {steps - cold_steps(steps) for _, steps in side.rides} == {24}  # 20 ms of the faster one


def test_an_earlier_pair_tells_the_span() -> None:
    ran = race(Bursty(50 * MS), Bursty(60 * MS), spans={0: 3, 1: 3})
    assert {steps - cold_steps(steps) for side in ran.records() for _, steps in side.rides} == {3}


@pytest.mark.parametrize(("step_ns", "lengths"), [(15 * MS, {2, 3}), (MS, {20}), (40 * MS, {1})])
def test_short_turns_take_a_step_more_by_chance(step_ns: int, lengths: set[int]) -> None:
    """Of those that are long, or one step each, no step is left out more often than others."""
    ran = race(Rider(step_ns), Rider(step_ns), longer=[False, False, True, True, True, True, False, False])
    one, other = ran.records()
    assert one.rides == other.rides
    assert {steps for _, steps in one.rides} == lengths


def test_a_race_beside_which_something_goes_on_has_no_rounds() -> None:
    ran = race(Rider(MS), Bursty(MS, goes_on="4 processes"))
    assert ran.ridden is not None
    assert ran.ridden.goes_on == {1: "4 processes"}
    assert [side.rides for side in ran.records()] == [[], []]


def test_alone_it_goes_on_as_it_likes() -> None:
    ran = Heat([Bursty(MS, goes_on="4 processes")], Course([(0,)] * 4)).run()
    assert len(ran.records()[0].rides) == 4


def test_no_round_begins_that_would_end_behind_the_deadline() -> None:
    ran = race(Rider(40 * MS), Rider(1e6 * SECOND), deadline=time.monotonic() + 1_000)
    assert [len(side.rides) for side in ran.records()] == [2, 2]


def test_at_the_deadline_nothing_is_left_running() -> None:
    gone = threading.Event()

    def stuck(seat: Seat, cancel: threading.Event) -> Any:
        cancel.wait()
        gone.set()
        raise KeyboardInterrupt

    with pytest.raises(OutOfTimeError):
        Heat([Rider(MS), stuck], Course([(0, 1)] * 4, deadline=time.monotonic() + 0.05)).run()
    assert gone.is_set()


def test_a_round_of_a_race_that_others_disturbed_is_ridden_again_by_all() -> None:
    """Both take the same steps; a quarter of the rounds at most, and never more than were planned."""
    order: list[Round] = [(0, 1), (1, 0)] * 10
    often = Rider(MS, disturbed=lambda turn: turn in (2, 3, 4, 5, 6))
    ran = Heat([Rider(MS), often], Course(order, first=4, wanted=lambda ridden: 8)).run()
    one, other = ran.records()
    assert one.rides == other.rides
    assert one.rounds == list(range(8 + repeats_of(6)))


def test_each_contender_of_a_table_has_whole_periods_of_its_own() -> None:
    sides = Bursty(2 * MS, span=30), Bursty(MS), Bursty(1500 * MS, span=8)
    order: list[Round] = [(0, 1, 2), (2, 0, 1)] * 3
    ran = Heat(list(sides), Course(order, budget_ns=60 * SECOND, spans={1: 50})).run()
    assert ran.ridden is not None
    assert ran.ridden.spans == {0: 30, 1: 50, 2: 1}, "twelve seconds are no turn"
    first, second, third = ({steps - cold_steps(steps) for _, steps in side.rides} for side in ran.records())
    assert (first, second, third) == ({30}, {50}, {1})


def test_a_table_beside_which_something_goes_on_has_no_rounds_either() -> None:
    ran = Heat([Rider(MS), Bursty(MS, goes_on="a thread")], Course([(0, 1)] * 4, budget_ns=SECOND)).run()
    assert ran.ridden is not None
    assert ran.ridden.goes_on == {1: "a thread"}
    assert [side.rides for side in ran.records()] == [[], []]
