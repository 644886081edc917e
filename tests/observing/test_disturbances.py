from __future__ import annotations

from timetrial.observing.disturbances import is_disturbed, noise
from timetrial.records.model import LaunchRecord, Purpose


def launch(
    purpose: Purpose = "speed", others: dict[str, float] | None = None, **witnesses: float | None
) -> LaunchRecord:
    return LaunchRecord(
        id="0", case="c", purpose=purpose, seed=1, block=0, position=0, outcome="ok", started_at="",
        duration_s=1, witnesses=witnesses, others=others or {},
    )  # fmt: skip


def test_quiet_machines_are_not_accused() -> None:
    quiet = launch(steal_ratio=0.001, others_cpus=0.03, cpus=2, wall_s=1.0, wait_ratio=0.01)
    unknown = launch(steal_ratio=None)
    assert not is_disturbed(quiet)
    assert not is_disturbed(unknown)
    assert noise([quiet, unknown, launch()]) == []


def test_old_records_tell_of_the_hypervisor_alone() -> None:
    """They counted the contender's own end among other programs."""
    assert not is_disturbed(launch(steal_ratio=0.0, other_cpu_ratio=0.4))
    assert is_disturbed(launch(steal_ratio=0.03, other_cpu_ratio=0.4))


def test_neighbours_are_counted_and_named() -> None:
    launches = [
        launch(steal_ratio=0.03),
        launch(others={"make": 0.7}, others_cpus=0.8, cpus=2, wall_s=1.0),
        launch(others={"make": 0.3, "yes": 0.2}, others_cpus=0.5, cpus=2, wall_s=1.0),
        launch(throttled_s=0.12),
        launch(),
        launch("proof", steal_ratio=0.9),
    ]
    assert [one.text for one in noise(launches)] == [
        "4 of 5 timed launches disturbed (other programs (make, yes) used up to 0.8 of the 2 CPUs; "
        "the hypervisor took up to 3 %; throttled by a quota for up to 120 ms): kept, marked"
    ]


def test_one_launch_needs_no_up_to() -> None:
    assert [
        one.text for one in noise([launch(others={"make": 0.7}, others_cpus=0.8, cpus=2, wall_s=1.0)])
    ] == ["1 of 1 timed launches disturbed (another program (make) used 0.8 of the 2 CPUs): kept, marked"]


def test_clocks_that_wander_are_named() -> None:
    assert noise([launch(frequency_hz=3.5e9), launch(frequency_hz=3.4e9)]) == []
    assert [one.text for one in noise([launch(frequency_hz=3.5e9), launch(frequency_hz=2.8e9)])] == [
        "the clock frequency was 2.8 to 3.5 GHz at the ends of timed launches: some were slower for that"
    ]
