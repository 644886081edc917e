"""Growth of memory and step time, work that changes at one call: what is named, what is not, and how often
noise is taken for it. All times and sizes are made up here."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from timetrial.analysis.growth import growth_of
from timetrial.analysis.heats import TurnTimes, levels_of
from timetrial.records.model import Segment
from timetrial.statistics.growth import (
    WARMING,
    common_change,
    does_nothing,
    lasting_change,
    trend,
)

MB = 1 << 20
ROUNDS, LAUNCHES, TURN_STEPS = 18, 4, 30
TRIALS = 300
MOST_FALSE = 0.01  # of cases that do not grow, said to grow
FloatArray = npt.NDArray[Any]


def launch(
    step_ns: FloatArray | None = None, held: FloatArray | None = None, level: Any = None, change: Any = None
) -> Any:
    """A launch of turns, as growth_of() looks at it."""
    count = len(held if held is not None else step_ns if step_ns is not None else ())
    sizes = np.zeros(count) if held is None else held
    segments = [
        Segment(kind="turn", steps=TURN_STEPS, first_stamp=0, stamps=1, first_loss=0, losses=0,
                rss_bytes=int(size) + 90 * MB, mapped_bytes=90 * MB)
        for size in sizes
    ]  # fmt: skip
    turns = None if step_ns is None else TurnTimes(np.arange(len(step_ns)), step_ns, step_ns)
    record = SimpleNamespace(
        segments=segments, turns=[SimpleNamespace(disturbed=False)] * count, purpose="speed"
    )
    return SimpleNamespace(record=record, turns=turns, level=level, times=None, change=change)


def sides(*times: FloatArray) -> list[Any]:
    """Launches of one heat."""
    turns = [TurnTimes(np.arange(len(one)), one, one) for one in times]
    return [launch(one, level=level) for one, level in zip(times, levels_of(turns), strict=True)]


def memory_words(*held: FloatArray) -> list[str]:
    return growth_of([launch(held=one) for one in held]).words


LEAK = 100.0 * MB + 4 * MB * TURN_STEPS * np.arange(1, ROUNDS + 1)


def test_a_leak_is_named_with_its_size() -> None:
    noise = np.random.default_rng(1).normal(0, 2 * MB, (3, ROUNDS))
    (said,) = memory_words(*(LEAK + one for one in noise))
    assert said.startswith("memory grows by 4 MB a step (22")
    assert said.endswith(f"MB at step {TURN_STEPS * ROUNDS})")
    assert len(memory_words(LEAK)) == 1  # memory is no matter of luck: one launch shows it


PLACES = np.arange(ROUNDS, dtype=np.float64)


@pytest.mark.parametrize(
    "held",
    [
        np.full(ROUNDS, 100.0 * MB),
        100 * MB + 30 * MB * np.minimum(PLACES, 6),  # what the first steps allocate
        100 * MB + 64 * MB * np.minimum(PLACES // 4, 2),  # an allocator's stairs, which end
        100 * MB + 90 * MB * np.log1p(PLACES),  # ever more slowly
        100 * MB + 90 * MB * (PLACES > 14),  # an evaluation near the end
        100 * MB + 40 * MB * (PLACES % 5),  # collected every fifth time
        100 * MB + 100_000.0 * PLACES,  # less than a page a step
        LEAK[::-1],
    ],
)
def test_memory_that_stays_is_not_named(held: FloatArray) -> None:
    assert memory_words(held, held) == []


def test_every_launch_must_grow_and_have_enough_to_tell() -> None:
    assert memory_words(LEAK, LEAK, np.full(ROUNDS, 100.0 * MB)) == []
    assert growth_of([launch(held=LEAK[:7])]).memory is None
    assert growth_of([]).words == []


def test_pages_of_files_do_not_count() -> None:
    one = launch(held=np.full(ROUNDS, 100.0 * MB))
    one.record.segments = [
        segment.model_copy(update={"rss_bytes": 200 * MB + k * MB, "mapped_bytes": 100 * MB + k * MB})
        for k, segment in enumerate(one.record.segments)
    ]
    assert growth_of([one]).words == []
    one.record.segments = [
        segment.model_copy(update={"mapped_bytes": None}) for segment in one.record.segments
    ]
    assert growth_of([one]).memory is None  # an older record


def heats(rng: np.random.Generator, growth: float, *, other: float = 0.0, noise: float = 0.02) -> list[Any]:
    """Launches of a side that grows by this fraction beside another one, on a machine that changes between
    two levels, a quarter apart, and drifts by up to 5 % in a launch."""
    found, line = [], np.arange(ROUNDS) / (ROUNDS - 1)
    for _ in range(LAUNCHES):
        is_slow = (np.cumsum(rng.random(ROUNDS) < 0.15) + rng.integers(2)) % 2
        machine = 0.25 * is_slow + rng.uniform(-0.05, 0.05) * line
        own = 2e6 * (1 + growth * line) * np.exp(machine + noise * rng.standard_normal(ROUNDS))
        beside = np.log1p(other * line) + machine + noise * rng.standard_normal(ROUNDS)
        found.append(launch(own, level=SimpleNamespace(others=beside - np.median(beside))))
    return found


def alone(rng: np.random.Generator, growth: float, *, drift: float = 0.0, noise: float = 0.02) -> list[Any]:
    """The same by itself; the machine becomes slower by `drift` in each launch, and stays so."""
    found, line = [], np.arange(ROUNDS) / (ROUNDS - 1)
    walk = np.cumsum(rng.normal(0, 0.02, LAUNCHES * ROUNDS))
    for place in range(LAUNCHES):
        machine = walk[place * ROUNDS : (place + 1) * ROUNDS] + drift * (place + line)
        own = 2e6 * (1 + growth * line) * np.exp(machine + noise * rng.standard_normal(ROUNDS))
        found.append(launch(own))
    return found


@pytest.mark.parametrize(
    ("world", "settings"),
    [
        (heats, {}),
        (heats, {"noise": 0.1}),
        (heats, {"other": -0.2}),  # the other one warms up: this one does not become slower
        (alone, {}),
        (alone, {"drift": 0.1}),
        (alone, {"drift": 0.3, "noise": 0.05}),
    ],
)
def test_noise_and_drift_are_hardly_ever_growth(
    world: Callable[..., list[Any]], settings: dict[str, float]
) -> None:
    rng = np.random.default_rng(7)
    alarms = sum(bool(growth_of(world(rng, 0.0, **settings)).words) for _ in range(TRIALS))
    assert alarms <= MOST_FALSE * TRIALS


@pytest.mark.parametrize(("world", "growth"), [(heats, 1.0), (alone, 1.0)])
def test_steps_that_become_slower_are_found(world: Callable[..., list[Any]], growth: float) -> None:
    rng = np.random.default_rng(8)
    found = sum(bool(growth_of(world(rng, growth)).words) for _ in range(50))
    assert found >= 40


def test_how_much_slower_is_said() -> None:
    line = np.arange(ROUNDS) / (ROUNDS - 1)
    (said,) = growth_of([launch(2e6 * (1 + 0.51 * line))] * 3).words
    assert said == "a step becomes slower by 1 % with each 10 steps (51 % in all that were measured)"
    assert growth_of([launch(2e6 * (1 + 0.04 * line))] * 3).words == []  # less than matters
    assert growth_of([launch(2e6 * (1 + 0.5 * line))] * 2).time is None  # too few launches to tell


def test_both_sides_that_slow_down_alike_are_the_machine() -> None:
    line = np.arange(ROUNDS) / (ROUNDS - 1)
    pairs = [sides(2e6 * (1 + 0.5 * line), 3e6 * (1 + 0.5 * line)) for _ in range(4)]
    assert growth_of([one for one, _ in pairs]).words == []


def steps(*parts: tuple[int, float], seed: int = 1) -> npt.NDArray[np.int64]:
    """Durations: so many steps of so many ns each, one in fifty disturbed."""
    rng = np.random.default_rng(seed)
    means = np.concatenate([np.full(count, ns) for count, ns in parts])
    noisy = means * np.exp(0.1 * rng.standard_normal(len(means))) + 4e6 * (rng.random(len(means)) < 0.02)
    return np.array(noisy, np.int64)


def test_work_that_ends_at_a_call_is_found() -> None:
    for seed in range(20):
        found = [lasting_change(steps((150, 2e6), (count, 321), seed=seed)) for count in (40, 9_850, 300_000)]
        assert [one and one.call for one in found] == [151] * 3
        assert all(one and does_nothing(one, [], []) for one in found)


@pytest.mark.parametrize(
    "durations",
    [
        steps((3_000, 2e6)),
        steps((WARMING, 2e6), (3_000, 321)),  # calls in which a compiler may work
        steps((1_000, 2e6), (1_000, 1e6)),  # twice: a level of the machine
        steps((100, 2e6), (100, 321), (100, 2e6)),  # not to the end
        steps(*[(10, 2e6 / 1.2**k) for k in range(30)]),  # a warm-up, step by step
        steps((12, 2e6)),
    ],
)
def test_warm_up_and_what_does_not_last_is_no_end_of_work(durations: npt.NDArray[np.int64]) -> None:
    assert lasting_change(durations) is None


def test_what_still_works_or_learns_does_not_do_nothing() -> None:
    """150 steps that read from a disk, or are interpreted, and then ones from memory, or compiled."""
    cached = lasting_change(steps((150, 2e7), (2_000, 1e6)))
    slowly = lasting_change(steps((150, 2e4), (2_000, 4e3)))
    assert cached is not None
    assert slowly is not None
    assert not does_nothing(cached, [2.3, 2.2], [0.41, 0.4])
    assert not does_nothing(cached, [2.3, 2.3], [2.3, 2.3])  # a step that always returns the same
    assert not does_nothing(cached, [float("nan")] * 2, [float("nan")] * 2)  # nor one that returns nothing
    assert does_nothing(cached, [2.3, 2.2], [0.4, 0.4])
    assert not does_nothing(slowly, [], [])  # by a fifth only
    cold = lasting_change(steps((30, 1_500), (3_000, 90)))  # what finds its caches empty at first
    assert cold is not None
    assert not does_nothing(cold, [], [])


def test_a_change_counts_at_the_same_call_of_every_launch() -> None:
    own = [lasting_change(steps((150 + late, 2e6), (900, 3e5), seed=late)) for late in (0, 1)]
    other = lasting_change(steps((300, 2e6), (900, 3e5)))
    (said,) = growth_of([launch(change=one) for one in own]).words
    assert said.startswith("from call 151 on a step takes 0.298 ms, before that 2.0")
    assert common_change([*own, other]) is None
    assert common_change([*own, None]) is None
    assert common_change(own[:1]) is None


def test_a_trend_needs_a_series() -> None:
    assert trend([]) is None
    flat = trend([(np.arange(9), np.ones(9))])
    assert flat is not None
    assert not flat.grows
