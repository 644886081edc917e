"""A speed launch stops by rule: over scripted steps, and live."""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from launching import MS, SHORT, make_plan, words

from timetrial.analysis.step_times import StepTimes, step_times_of
from timetrial.analysis.steps import steps_of
from timetrial.launch import Measure, run_launch
from timetrial.launch.decisions import SEGMENT_NS, Order, Progress, SpeedRule
from timetrial.observing import observe
from timetrial.observing.held import anonymous_peak
from timetrial.observing.observe import Watch
from timetrial.records import store
from timetrial.records.model import LaunchRecord, Segment
from timetrial.statistics.stopping import StopRule

QUICK = Measure(rule=StopRule(0.03), min_ns=400 * MS, budget_ns=1500 * MS)


@dataclass
class Script:
    """Takes the place of a contender: its steps are known beforehand, their clock is a sum."""

    durations_ns: np.ndarray[Any, Any]
    orders: list[Order] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)  # steps done at each
    taken: int = 0

    def segment(self, order: Order) -> tuple[int, int]:
        """Steps and nanoseconds of one segment."""
        begun, ns = self.taken, 0
        while self.taken - begun < order.steps and ns < order.max_ns:
            ns += int(self.durations_ns[self.taken])
            self.taken += 1
        return self.taken - begun, ns


def run_script(script: Script, measure: Measure) -> tuple[SpeedRule, str, Progress]:
    """As run.py does with a SegmentRunner: one segment queued ahead."""
    rule, done, stop = SpeedRule(measure), Progress(), None
    while stop is None:
        queued: deque[Order] = deque()
        while True:
            while len(queued) < 2:
                following = rule.order(
                    Progress(
                        done.steps,
                        done.ns,
                        sum(one.steps for one in queued),
                        sum(one.max_ns for one in queued),
                    )
                )
                if following is None:
                    break
                queued.append(following)
                script.orders.append(following)
            if not queued:
                break
            steps, ns = script.segment(queued.popleft())
            done = Progress(done.steps + steps, done.ns + ns)
            if rule.wants_look(done):
                script.looks.append(done.steps)
                rule.look(script.durations_ns[: done.steps], done)
        rule.look(script.durations_ns[: done.steps], done)
        stop = rule.stop_reason(done)
    return rule, stop, done


def steps(typical_ns: float, count: int, scatter: float = 0.02, seed: int = 1) -> np.ndarray[Any, Any]:
    return typical_ns * (1 + scatter * np.random.default_rng(seed).standard_normal(count))


def test_steady_steps_converge_long_before_the_budget() -> None:
    rule, stop, done = run_script(Script(steps(2 * MS, 3000)), QUICK)
    assert stop == "converged"
    assert rule.judged is not None
    assert rule.judged.median is not None
    assert rule.judged.median.half_width is not None
    assert rule.judged.median.half_width <= 0.03
    # One look when the least is there, and the segment that was queued by then.
    assert QUICK.min_ns <= done.ns <= QUICK.min_ns + 2 * SEGMENT_NS


def test_what_never_converges_costs_the_budget_and_no_more() -> None:
    script = Script(steps(10 * MS, 3000))
    rule, stop, done = run_script(script, dataclasses.replace(QUICK, rule=StopRule(1e-6)))
    assert stop == "budget"
    assert rule.judged is not None
    assert rule.judged.steady.accepted
    # A segment ends with the step in which its time is over.
    assert QUICK.budget_ns <= done.ns <= QUICK.budget_ns + len(script.orders) * script.durations_ns.max()


def test_a_drift_is_no_steady_state() -> None:
    drifting = steps(2 * MS, 3000, scatter=0.001) * np.linspace(1, 2, 3000)
    _, stop, done = run_script(Script(drifting), QUICK)
    assert stop == "no_steady_state"
    assert done.ns >= QUICK.budget_ns


def test_warm_up_is_waited_for() -> None:
    slow_start = steps(2 * MS, 3000)
    slow_start *= 1 + 2 * np.exp(-np.arange(3000) / 30)
    rule, stop, done = run_script(Script(slow_start), QUICK)
    assert stop == "converged"
    assert rule.judged is not None
    assert rule.judged.steady.label == "warm-up"
    assert 60 <= rule.judged.steady.first <= 200
    assert done.steps >= rule.judged.steady.first + QUICK.rule.min_steps


def test_slow_steps_end_by_the_budget() -> None:
    rule, stop, done = run_script(Script(steps(300 * MS, 20)), QUICK)
    assert (stop, done.steps) == ("budget", 6)  # of 300 ms, where segments may take 250 ms
    assert rule.judged is not None
    assert rule.judged.steady.label is None


def test_the_number_of_steps_is_bounded() -> None:
    rule, stop, done = run_script(Script(steps(1000, 5000)), dataclasses.replace(QUICK, max_steps=2001))
    assert (stop, done.steps) == ("max_steps", 2000)
    assert not rule.judged or not rule.judged.enough


def test_segments_grow_and_looks_are_few() -> None:
    measure = dataclasses.replace(QUICK, rule=StopRule(0.0), budget_ns=20_000 * MS)
    script = Script(steps(1 * MS, 40_000))
    _, stop, _ = run_script(script, measure)
    assert stop == "budget"
    sizes = [order.max_ns for order in script.orders]
    assert sizes[0] == 100 * MS
    assert max(sizes) == SEGMENT_NS
    assert sizes[:-1] == sorted(sizes[:-1])  # the last one has what is left of the budget
    # From 0.4 to 20 s, by 1.25 each: 18 at most, fewer where judging takes more of the processor.
    assert 5 <= len(script.looks) <= 18
    assert all(after >= 1.25 * before for before, after in zip(script.looks, script.looks[1:], strict=False))


# Live -------------------------------------------------------------------------------------------------


def times_of(folder: Path, record: LaunchRecord) -> StepTimes:
    found = step_times_of(
        steps_of(record, store.read_stamps(folder), store.read_losses(folder)), record.purpose
    )
    assert found is not None
    return found


@pytest.mark.parametrize(("half_width", "step_us"), [(0.05, 500), (0.0, 500), (0.05, 40_000)])
def test_what_is_said_is_what_the_record_shows(tmp_path: Path, half_width: float, step_us: int) -> None:
    """On a quiet machine and on a busy one: the reason to stop can be read off the steps that are kept.

    Even a width of nothing can be reached: steps that wait for a deadline tie, to the tick of a coarse clock.
    """
    measure = dataclasses.replace(
        SHORT, rule=StopRule(half_width), min_ns=150 * MS, budget_ns=400 * MS, max_steps=100_000
    )
    plan = make_plan(
        tmp_path / "launch", "null", measure=measure, settings={"threads": "1", "null.step_us": str(step_us)}
    )
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    times = times_of(plan.folder, record)
    assert times.steady is not None
    plain = [segment for segment in record.segments if segment.kind in ("warmup", "steady")]
    took_ns = len(times.durations_ns) * times.mean_ns
    if record.stop_reason == "converged":
        assert times.steady.accepted
        assert times.median.half_width is not None
        assert times.median.half_width <= half_width
        assert len(times.durations_ns) >= measure.rule.min_steps
    elif record.stop_reason == "no_steady_state":
        assert times.steady.label is not None
        assert not times.steady.accepted
    else:
        assert record.stop_reason == "budget"
        assert times.steady.accepted or times.steady.label is None
    if step_us == 40_000:
        assert record.stop_reason == "budget"
        assert times.steady.label is None
        assert took_ns > 200 * MS
    # Segments that end before the cut are warm-up, and only those.
    order = [segment.kind for segment in plain]
    assert order == sorted(order, reverse=True)
    before = sum(segment.steps for segment in plain if segment.kind == "warmup")
    assert before <= int(np.argmax(times.counting)) <= sum(segment.steps for segment in plain) + 1
    assert record.memory.steady_peak is not None
    assert record.threads


class FakeObserver:
    """Answers with what the test has put there; `peaks` are of the time since the last reset."""

    pid = 1

    def __init__(self) -> None:
        self.peak = 0
        self.files = 0
        self.shared = 0
        self.cpu_ns = 0

    def read(self, *, once: bool) -> Any:
        thread = SimpleNamespace(
            tid=1,
            name="one",
            cpu_ns=self.cpu_ns,
            wait_ns=0,
            allowed_cpus="0",
            nice=0,
            policy=0,
            voluntary_switches=0,
            involuntary_switches=0,
        )
        return SimpleNamespace(
            peak_rss_bytes=self.peak,
            rss_bytes=self.peak,
            anonymous_bytes=self.peak - self.files - self.shared,
            file_rss_bytes=self.files,
            shared_rss_bytes=self.shared,
            threads=(thread,),
            cpu_ns=self.cpu_ns,
            minor_faults=0,
            major_faults=0,
        )

    def migrations(self) -> int:
        return 4

    def reset_peak(self) -> None:
        self.peak = 1


@pytest.mark.parametrize(
    ("cut", "peak", "cpu_ns"),
    [(0, 900, 60), (1, 400, 50), (100, 400, 50), (150, 300, 30), (10_000, 300, 30)],
)
def test_peak_and_threads_are_those_of_the_steady_part(
    cut: int, peak: int, cpu_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Borders at 0, 100 and 200 steps; a peak in warm-up counts only where nothing is cut."""
    monkeypatch.setattr(observe, "FEWEST_COUNTED_NS", 0)
    watch = Watch(1, ())
    observer = FakeObserver()
    watch._observer = observer  # type: ignore[assignment]
    watch.begin_steady()
    for done, (peak_before, spent) in {100: (900, 10), 200: (400, 20), 300: (300, 30)}.items():
        observer.peak = peak_before
        observer.cpu_ns += spent
        watch.border(done)
    segment = Segment(kind="steady", steps=1, first_stamp=0, stamps=2, first_loss=0, losses=1)
    watch.count_steady([segment], cut)
    assert watch.memory.steady_peak == peak
    assert [thread.cpu_ns for thread in watch.threads] == [cpu_ns]
    watch.count_steady([segment.model_copy(update={"window_bytes": 50})], cut)
    assert watch.memory.steady_peak == peak - 50


def seen(peak: int, now: int, files: int, shared: int = 0) -> Any:
    return SimpleNamespace(
        peak_rss_bytes=peak,
        rss_bytes=now,
        anonymous_bytes=now - files - shared,
        file_rss_bytes=files,
        shared_rss_bytes=shared,
    )


@pytest.mark.parametrize(
    ("looks", "window", "held"),
    [
        ([seen(0, 500, 200), seen(600, 500, 200)], 0, 400),  # files stay: exactly
        ([seen(0, 500, 0), seen(5500, 5500, 5000)], 0, 500),  # a data set that is read counts nothing
        ([seen(0, 500, 0), seen(5500, 700, 200), seen(900, 700, 200)], 0, 5300),  # the peak of either part
        ([seen(0, 600, 200, 100), seen(700, 600, 200, 100)], 100, 400),  # the recorder's window
        ([seen(0, 600, 200), seen(700, 600, 200)], 100, 400),  # a window that no look has seen
        ([seen(0, 600, 200), seen(900, 850, 200, 250)], 0, 450),  # memory that is shared is told apart
    ],
)
def test_pages_of_mapped_files_are_not_held(looks: list[Any], window: int, held: int) -> None:
    assert anonymous_peak(itertools.pairwise(looks), window) == held


def test_too_short_a_time_says_nothing_about_threads() -> None:
    """All these borders lie within a millisecond: what is counted begins at the first."""
    watch = Watch(1, ())
    observer = FakeObserver()
    watch._observer = observer  # type: ignore[assignment]
    watch.begin_steady()
    for done in (100, 200, 300):
        observer.cpu_ns += 10
        watch.border(done)
    watch.count_steady([], 150)
    assert [thread.cpu_ns for thread in watch.threads] == [30]
