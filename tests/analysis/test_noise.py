from __future__ import annotations

from timetrial.analysis.noise import disturbance, is_disturbed
from timetrial.records.model import LaunchRecord, Purpose


def launch(purpose: Purpose = "speed", **witnesses: float | None) -> LaunchRecord:
    return LaunchRecord(
        id="0", case="c", purpose=purpose, seed=1, block=0, position=0, outcome="ok", started_at="",
        duration_s=1, witnesses=witnesses,
    )  # fmt: skip


def test_quiet_machines_are_not_accused() -> None:
    quiet = launch(steal_ratio=0.001, other_cpu_ratio=0.03)
    unknown = launch(steal_ratio=None)
    assert not is_disturbed(quiet)
    assert not is_disturbed(unknown)
    assert disturbance([quiet, unknown, launch()]) is None


def test_neighbours_are_counted_and_named() -> None:
    launches = [
        launch(steal_ratio=0.03),
        launch(other_cpu_ratio=0.5),
        launch(),
        launch("proof", steal_ratio=0.9),
    ]
    assert disturbance(launches) == (
        "2 of 3 timed launches disturbed (up to 3 % stolen by the hypervisor, "
        "up to 50 % of the CPUs used by other programs): kept, marked"
    )
