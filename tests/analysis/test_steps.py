from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import stamps_of
from hypothesis import given
from hypothesis import strategies as st

from timetrial.analysis.step_times import StepTimes, step_times_of
from timetrial.analysis.steps import cpu_time_per_step_ns, steps_of
from timetrial.records.model import LaunchRecord, Segment


def launch(segments: list[tuple[str, list[int]]]) -> tuple[LaunchRecord, Any, Any]:
    records: list[Segment] = []
    stamps, first, steps = [], 0, 0
    for kind, durations in segments:
        own = stamps_of(durations)
        records.append(
            Segment.model_validate(
                {
                    "kind": kind,
                    "steps": len(durations),
                    "first_stamp": first,
                    "stamps": len(own),
                    "first_loss": steps,
                    "losses": len(durations),
                }
            )
        )
        stamps.append(own)
        first, steps = first + len(own), steps + len(durations)
    record = LaunchRecord(
        id="0", case="c", purpose="speed", seed=1, block=0, position=0, outcome="ok", started_at="",
        duration_s=0, segments=records,
    )  # fmt: skip
    return record, np.concatenate([np.empty(0, np.uint64), *stamps]), np.arange(steps, dtype=np.float64)


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=1, max_size=20), min_size=1, max_size=5))
def test_durations_come_back(segments: list[list[int]]) -> None:
    steps = steps_of(*launch([("steady", durations) for durations in segments]))
    assert steps.duration_ns.tolist() == [one for durations in segments for one in durations]
    assert steps.loss.tolist() == list(range(len(steps)))
    assert steps.first_in_segment.sum() == len(segments)


def times_of(segments: list[tuple[str, list[int]]], purpose: Any = "speed") -> StepTimes:
    found = step_times_of(steps_of(*launch(segments)), purpose)
    assert found is not None
    return found


def test_first_steps_of_segments_do_not_count() -> None:
    segments = [("first", [900]), ("warmup", [50, 49]), ("steady", [99, 10, 11]), ("detailed", [70, 70])]
    times = times_of(segments)
    assert times.durations_ns.tolist() == [10, 11]  # too few to tell: the segments say what was warm-up
    assert times.counting.tolist() == [False] * 4 + [True] * 2 + [False] * 2
    assert times.median.estimate == 10.5
    assert times.steady is not None
    assert times.steady.label is None


def test_of_a_profile_launch_the_segments_say_what_counts() -> None:
    segments = [("first", [900]), ("warmup", [50, 49]), ("steady", [99, 10, 11]), ("steady", [98, 12])]
    times = times_of(segments, "profile")
    assert times.durations_ns.tolist() == [10, 11, 12]
    assert times.steady is None


def test_of_a_speed_launch_the_steps_say_where_it_is_steady() -> None:
    """Whatever the segments are called: an older record named them by time."""
    rng = np.random.default_rng(1)
    steps = 5e6 * (1 + 0.01 * rng.standard_normal(300))
    steps[:30] += 10e6
    plain = steps.astype(int).tolist()
    times = times_of([("first", [30_000_000]), ("steady", plain[:150]), ("warmup", plain[150:])])
    assert times.steady is not None
    assert times.steady.label == "warm-up"
    assert 30 <= 299 - len(times.durations_ns) - 1 <= 40  # the cut is at a block's border
    assert times.median.estimate == pytest.approx(5e6, rel=0.01)
    assert times.median.low is not None
    assert times.median.high is not None
    assert times.median.low < 5e6 < times.median.high


def test_percentiles_only_where_the_sample_carries_them() -> None:
    rng = np.random.default_rng(2)
    few, many = (
        times_of([("steady", (5e6 * (1 + 0.01 * rng.standard_normal(n))).astype(int).tolist())])
        for n in (60, 1500)
    )
    assert set(few.percentiles) == {25, 75}
    assert set(many.percentiles) == {5, 25, 75, 95, 99}
    assert many.percentiles[5].estimate < many.percentiles[25].estimate < many.median.estimate
    assert many.mean_ns == pytest.approx(5e6, rel=0.01)
    assert many.spread == pytest.approx(0.01, rel=0.1)


def test_segments_of_one_long_step_keep_it() -> None:
    assert times_of([("first", [900]), ("steady", [300]), ("steady", [310])]).median.estimate == 305


def test_stamps_of_parts_belong_to_their_step() -> None:
    times = np.array([100, 110, 130, 160, 165], np.uint64)
    boundaries = np.array([0, 3, 4, 5, 1], np.uint64)  # segment, forward, loss, backward, step
    segment = Segment(kind="detailed", steps=1, first_stamp=0, stamps=5, first_loss=0, losses=1)
    record = launch([])[0].model_copy(update={"segments": [segment]})
    steps = steps_of(record, (times << np.uint64(8)) | boundaries, np.array([0.5]))
    assert steps.duration_ns.tolist() == [65]


def test_a_launch_that_never_stepped() -> None:
    steps = steps_of(*launch([]))
    assert len(steps) == 0
    assert step_times_of(steps, "speed") is None


def test_a_killed_writer_leaves_whole_steps_and_missing_losses() -> None:
    record, stamps, losses = launch([("steady", [10, 20, 30])])
    segment = record.segments[0].model_copy(update={"losses": 2})
    steps = steps_of(record.model_copy(update={"segments": [segment]}), stamps, losses[:2])
    assert steps.duration_ns.tolist() == [10, 20, 30]
    assert np.isnan(steps.loss[2])


def test_cpu_time_of_a_step_is_that_of_steady_segments() -> None:
    segment = Segment(kind="steady", steps=2, first_stamp=0, stamps=3, first_loss=0, losses=2, cpu_ns=300)
    others = {"warmup": {"kind": "warmup", "cpu_ns": 10**9}, "more": {"steps": 4, "cpu_ns": 900}}
    segments = [segment, *(segment.model_copy(update=change) for change in others.values())]
    record = LaunchRecord(
        id="1", case="1", purpose="profile", seed=1, block=0, position=0, outcome="ok", started_at="",
        duration_s=1.0, segments=segments,
    )  # fmt: skip
    assert cpu_time_per_step_ns(record) == 200
    assert cpu_time_per_step_ns(record.model_copy(update={"segments": []})) is None
