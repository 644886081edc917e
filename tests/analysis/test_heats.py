"""Levels of a heat, from turns with a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.analysis.heats import TurnTimes, levels_of, turn_times
from timetrial.analysis.steps import (
    Steps,
    mean_per_step_ns,
    steady_before_turns,
    steady_mask,
    steps_of,
    steps_of_turns,
    whole_over_counting,
)
from timetrial.records.model import LaunchRecord, Segment, Turn
from timetrial.statistics.quiet import counted_rounds

TRUTH = np.array([1e6, 2e6, 0.5e6])


def turns(times: np.ndarray, rounds: list[int] | None = None, medians: np.ndarray | None = None) -> TurnTimes:
    numbers = np.arange(len(times)) if rounds is None else np.array(rounds)
    return TurnTimes(numbers, times, times if medians is None else medians)


def steps_ns(launches: list[TurnTimes]) -> list[float]:
    return [level.step_ns for level in levels_of(launches)]


def test_levels_are_those_of_rounds_that_were_quiet_for_others() -> None:
    slow = np.repeat([[1.2, 1.5, 1.3]], 10, axis=0)
    slow[[1, 2, 5, 6, 7, 9]] = 1.0
    times = TRUTH * slow
    assert steps_ns([turns(column) for column in times.T]) == pytest.approx(TRUTH)


@pytest.mark.parametrize("contenders", [2, 3])
@pytest.mark.parametrize("within", [True, False], ids=["within a turn", "of a whole turn"])
def test_what_a_step_does_now_and_then_counts_with_its_share(contenders: int, within: bool) -> None:
    """Of one turn in four, by chance, a half more. Nobody else's time moves."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(400):
        times = TRUTH[:contenders] * np.exp(0.05 * rng.standard_normal((16, contenders)))
        typical = times.copy()
        times[rng.permutation(16)[:4], 1] *= 1.5
        medians = typical if within else times
        found.append(steps_ns([turns(*pair) for pair in zip(times.T, [None] * 3, medians.T, strict=False)]))
    mean = np.mean(found, axis=0) / TRUTH[:contenders]
    assert mean[1] / mean[0] == pytest.approx(1.125, rel=0.01)
    assert mean[[0, -1] if contenders > 2 else [0]] == pytest.approx(1.0, rel=0.01)


def test_drifts_of_the_machine_cancel() -> None:
    """Everyone slows down by half within the heat; ratios stay what they are."""
    times = TRUTH * np.linspace(1, 1.5, 20)[:, None]
    levels = np.array(steps_ns([turns(column) for column in times.T]))
    assert levels / levels[0] == pytest.approx(TRUTH / TRUTH[0])


def test_who_rides_in_few_rounds_is_compared_within_these() -> None:
    """The slow contender was there only when the machine was slow."""
    rounds = np.where(np.arange(12) % 4 == 3, 1.4, 1.0)
    fast, slow = 1e6 * rounds, 1e9 * rounds[3::4]
    fast_level, slow_level = steps_ns([turns(fast), turns(slow, [3, 7, 11])])
    assert slow_level / fast_level == pytest.approx(1000)


def test_one_alone_and_one_that_was_seldom_there() -> None:
    assert steps_ns([turns(np.array([2.0, 2.0, 8.0]))]) == pytest.approx([4.0])
    both = steps_ns([turns(np.array([2.0, 2.0, 2.0])), turns(np.array([6.0]), [1])])
    assert both == pytest.approx([2.0, 6.0])


def test_ranking_leaves_out_rounds_that_nobody_else_rode() -> None:
    others = np.log(np.array([1.0, np.nan, 3.0, 1.1, 1.2, np.nan, 1.05, 2.0]))
    assert np.flatnonzero(counted_rounds(np.ones(8, np.bool_), others)).tolist() == [0, 3, 6]
    assert counted_rounds(np.arange(8) == 1, others).tolist() == (np.arange(8) == 1).tolist()


def record(turns: list[Turn], steps_each: int) -> tuple[LaunchRecord, np.ndarray]:
    """A launch with so many turns of so many steps; step k of each takes k + 1 us."""
    stamps, segments = [], []
    for number in range(len(turns)):
        times = 10**9 * (number + 1) + np.concatenate([[0], np.cumsum(1000 * np.arange(1, steps_each + 1))])
        marks = np.array([0] + [1] * steps_each)
        stamps.append((times.astype(np.uint64) << np.uint64(8)) | marks.astype(np.uint64))
        segments.append(Segment(kind="turn", steps=steps_each, first_stamp=number * (steps_each + 1),
                                stamps=steps_each + 1, first_loss=0, losses=0))  # fmt: skip
    made = LaunchRecord(
        id="000", case="a", purpose="speed", seed=1, block=0, position=0, outcome="ok", heat=1,
        started_at="2026-01-01T00:00:00+00:00", duration_s=1.0, segments=segments, turns=turns,
    )  # fmt: skip
    return made, np.concatenate(stamps)


@pytest.mark.parametrize(("steps_each", "first_us"), [(1, 1), (2, 2), (9, 2), (10, 3)])
def test_cold_steps_of_a_turn_do_not_count(steps_each: int, first_us: int) -> None:
    made, stamps = record([Turn(round=0)], steps_each)
    steps = steps_of(made, stamps, np.empty(0))
    (own,) = steps_of_turns(steps)
    assert steps.duration_ns[own].tolist() == [1000 * k for k in range(first_us, steps_each + 1)]


@pytest.mark.parametrize(("disturbed", "rounds"), [([1], [0, 1, 2]), ([0, 1, 3], [0, 1, 1, 2])])
def test_disturbed_turns_are_left_out_unless_hardly_any_other_is_there(
    disturbed: list[int], rounds: list[int]
) -> None:
    """The second turn was taken again in its round. Levels and step times go by the same turns."""
    ridden = [0, 1, 1, 2]
    turns = [Turn(round=number, disturbed=place in disturbed) for place, number in enumerate(ridden)]
    made, stamps = record(turns, 3)
    steps = steps_of(made, stamps, np.empty(0))
    seen = turn_times(made, steps)
    assert seen is not None
    assert seen.rounds.tolist() == rounds
    mask, _ = steady_mask(steps, "speed")
    assert len(np.unique(steps.segment[mask])) == len(rounds)


def test_the_error_of_a_level_is_that_of_its_turns() -> None:
    rng = np.random.default_rng(9)
    found = []
    for _ in range(300):
        times = TRUTH * np.exp(0.05 * rng.standard_normal((30, 3)))
        found.append(levels_of([turns(column) for column in times.T]))
    ratios = [np.log(one[0].step_ns / one[1].step_ns) for one in found]
    said = np.mean([one[0].error_against(one[1]) for one in found])
    assert said == pytest.approx(np.std(ratios), rel=0.3)
    single = levels_of([turns(np.array([2.0])), turns(np.array([3.0]))])
    assert np.isnan(single[0].error_against(single[1]))


def test_a_stall_counts_with_the_steps_that_count() -> None:
    made, stamps = record([Turn(round=0), Turn(round=1)], 4)
    steps = steps_of(made, stamps, np.empty(0))
    steps.duration_ns[:] = [1000] * 4 + [1500] * 4  # the machine was slower for the second turn
    counting = np.array([False, True, True, True] * 2)
    assert mean_per_step_ns(steps, counting) == pytest.approx(1250)
    assert whole_over_counting(steps, counting) == pytest.approx(1.0)
    steps.duration_ns[0] += 4000  # in the first turn, in the step that finds others' caches
    assert mean_per_step_ns(steps, counting) == pytest.approx(1250)
    assert whole_over_counting(steps, counting) == pytest.approx(1750 / 1250)
    steps.duration_ns[1] += 3000
    assert mean_per_step_ns(steps, counting) == pytest.approx(1750)


def test_the_steady_state_of_a_heat_begins_in_its_warm_up() -> None:
    made, stamps = record([Turn(round=0)], 4)
    assert steady_before_turns(steps_of(made, stamps, np.empty(0))) is None  # no warm-up
    rng = np.random.default_rng(2)
    warm = (5e6 * (1 + 0.01 * rng.standard_normal(300))).astype(np.int64)
    warm[:20] *= 2
    segment = np.repeat([0, 1, 2], [1, 300, 4])
    nothing = np.zeros(305, np.bool_)
    times = np.concatenate([[10**9], warm, [5 * 10**6] * 4])
    kinds = ("first", "warmup", "turn")
    steps = Steps(times, np.cumsum(times), np.zeros(305), segment, nothing, nothing, nothing, kinds)
    mask = steady_before_turns(steps)
    assert mask is not None
    assert int(np.argmax(mask)) == pytest.approx(31, abs=20)
    assert not mask[steps.kind != "warmup"].any()


def test_a_launch_that_failed_in_a_turn() -> None:
    """Its last segment has no entry in `turns`."""
    made, stamps = record([Turn(round=0), Turn(round=1), Turn(round=2)], 3)
    made = made.model_copy(update={"turns": made.turns[:2]})
    seen = turn_times(made, steps_of(made, stamps, np.empty(0)))
    assert seen is not None
    assert seen.rounds.tolist() == [0, 1]
    made = made.model_copy(update={"turns": []})
    assert turn_times(made, steps_of(made, stamps, np.empty(0))) is None


def test_who_never_rode_with_anybody_has_a_level_of_his_own() -> None:
    often, other = turns(np.full(27, 1.0)), turns(np.full(3, 4.0), [27, 28, 29])
    assert steps_ns([often, other]) == pytest.approx([1.0, 4.0])
