"""Memory by phase, over scripted looks: what belongs to which phase."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from timetrial.observing.observe import Watch
from timetrial.records.model import CaseRecord, Memory, MemoryAt, Phase, Segment
from timetrial.report.detail import memory_facts


class Observer:
    """What it holds now, and at most since the last reset."""

    pid = 1

    def __init__(self) -> None:
        self.now = self.peak = 0

    def hold(self, now: int, peak: int | None = None) -> None:
        self.peak = max(self.peak, peak or 0, now)
        self.now = now

    def read(self, *, once: bool) -> Any:
        assert once
        return SimpleNamespace(
            peak_rss_bytes=self.peak,
            rss_bytes=self.now,
            anonymous_bytes=self.now,
            file_rss_bytes=0,
            shared_rss_bytes=0,
            threads=(),
            cpu_ns=0,
            minor_faults=0,
            major_faults=0,
        )

    def migrations(self) -> None:
        return None

    def reset_peak(self) -> None:
        self.peak = self.now


def watched() -> tuple[Watch, Observer]:
    watch, observer = Watch(1, ()), Observer()
    watch._observer = observer  # type: ignore[assignment]
    return watch, observer


SEGMENT = Segment(kind="train", steps=1, first_stamp=0, stamps=2, first_loss=0, losses=1)


def test_what_an_evaluation_holds_is_not_held_by_the_steps() -> None:
    watch, observer = watched()
    said = Phase(name="import", ns=1, rss_bytes=50, mapped_bytes=20)
    observer.hold(100, 150)
    watch.after_ready([said])
    observer.hold(100, 900)
    with watch.evaluation(0):
        observer.hold(110, 5_000)
    watch.begin_steady()
    observer.hold(120, 300)
    with watch.evaluation(10):
        observer.hold(120, 7_000)
    observer.hold(130, 400)
    watch.end_steady([SEGMENT])
    watch.end([SEGMENT])
    peaks = {one.phase: one.anonymous_peak_bytes for one in watch.memory.phases}
    assert peaks == {"import": None, "build": 150, "steady": 400, "evaluation": 7_000, "after": None}
    assert watch.memory.phases[0].anonymous_bytes == 30
    assert watch.memory.steady_peak == watch.memory.held == 400
    assert watch.memory.lifetime_peak == 7_000


def test_a_contender_that_dies_early_has_the_phases_that_it_came_to() -> None:
    watch, observer = watched()
    observer.hold(100, 150)
    watch.after_ready([])
    assert [one.phase for one in watch.memory.phases] == ["build"]


def test_words_for_a_person() -> None:
    def facts(case: Any, held: Memory) -> dict[str, str]:
        return dict(memory_facts(CaseRecord.model_construct(**case), held))

    at = MemoryAt(
        phase="steady",
        resident_bytes=30 << 20,
        anonymous_bytes=20 << 20,
        shared_bytes=0,
        file_bytes=10 << 20,
        anonymous_peak_bytes=24 << 20,
    )
    least = {"weights": 1 << 20, "gradients": 1 << 20, "states": 0, "activations": 3 << 20}
    said = facts({"least_bytes": least}, Memory(phases=[at], steady_peak=34 << 20))
    assert (
        said["memory by phase"] == "steady: 20 MB private, 0 B shared, 10 MB of files; at most 24 MB private"
    )
    assert said["memory on paper"] == ("5 MB: 1 MB of weights, 1 MB of gradients, 3 MB of activations")
    assert facts({"least_bytes": None}, Memory()) == {}
