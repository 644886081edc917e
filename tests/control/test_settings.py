"""Settings are checked before anything starts and judged by library and kernel afterwards."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import Contender, validate_settings
from timetrial.contenders import settings as settings_module
from timetrial.control.cpus import format_cpus, parse_cpus
from timetrial.control.habits import is_helper
from timetrial.control.judging import Evidence, judge_settings, mismatch
from timetrial.control.threads import ThreadEvidence, judge_threads
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch
from timetrial.processes.events import Reading
from timetrial.records.model import Setting, Thread

WALL_NS = 1_000_000_000
CONTENDER = Contender("any", "native", Path("any.so"), "0", settings=("any.knob",))


def case(**settings: str) -> Case:
    return Case(backend="any", workload=workload("mlp"), settings=settings)


def judge(name: str, asked: str, evidence: Evidence) -> Setting:
    return judge_settings(case(**{name: asked}), evidence)[0]


def evidence(
    getter: str | None, shares: list[float], tasks: int | None = None, cpus: str = "0-1"
) -> Evidence:
    threads = tuple(
        Thread(tid=i, name="t", cpu_ns=int(share * WALL_NS), allowed_cpus=cpus)
        for i, share in enumerate(shares)
    )
    readings = {} if getter is None else {"threads": Reading(effective=getter, how_read="getter()")}
    seen = ThreadEvidence(
        steady=threads,
        steady_wall_ns=WALL_NS if shares else 0,
        tasks=tasks if tasks is not None else (len(shares) or None),
    )
    return Evidence(readings=readings, threads=seen)


@pytest.mark.parametrize(
    ("asked", "getter", "shares", "tasks", "status", "effective"),
    [
        ("2", "2", [0.9, 0.8], 2, "applied", "2"),
        ("2", "2", [0.9, 0.8, 0.0], 3, "applied", "2"),  # an idle helper
        ("2", "2", [1.0, 0.0], 2, "adjusted", "1"),  # small products legally use one thread
        ("2", "2", [1.0], 1, "ignored", "1"),  # the getter lies: there is one thread
        ("1", "1", [1.0], 1, "applied", "1"),
        ("1", "1", [1.0, 0.9], 2, "ignored", "2"),  # the getter lies the other way
        ("1", "1", [1.05, 0.0], 2, "applied", "1"),
        ("1", "2", [1.0], 1, "ignored", "2"),
        ("1", None, [1.0, 0.9], 2, "ignored", "2"),
        ("1", None, [1.0], 1, "applied", "1"),
        ("2", "2", [], 2, "applied", "2"),  # a proof launch has no steady phase
        ("2", None, [], None, "unverifiable", None),
    ],
)
def test_threads_are_judged_by_library_and_kernel(
    asked: str, getter: str | None, shares: list[float], tasks: int | None, status: str, effective: str | None
) -> None:
    setting = judge("threads", asked, evidence(getter, shares, tasks))
    assert (setting.status, setting.effective) == (status, effective), setting
    assert (mismatch([setting]) is not None) == (status == "ignored")


def test_pools_that_hear_no_number_are_told_what_holds_them() -> None:
    setting = judge("threads", "1", evidence(None, [1.0, 0.9], 2))
    first = min(os.sched_getaffinity(0))
    assert mismatch([setting]) == "threads asked 1, working 2"
    assert mismatch([setting], own_step=True) == (
        "threads asked 1, working 2: pools of Python's and XLA's hear of no number; "
        f"affinity={first} in place of it holds them"
    )


def test_too_much_processor_time_is_ignored_whoever_says_otherwise() -> None:
    setting = judge("threads", "2", evidence("2", [1.5, 0.9], 2))  # a thread that the kernel counts double
    assert setting.status == "ignored"


def judge_pool(
    asked: int, shares: list[float], *, main: int | None = None, bound: str | None = None, cpus: str = "0-1"
) -> tuple[str, str | None]:
    """Of a framework without a getter. `shares` of processors by thread; number 0 is the main thread."""
    seen = evidence(None, shares, cpus=cpus).threads
    mask = None if bound is None else parse_cpus(bound)
    setting = judge_threads(asked, None, "", dataclasses.replace(seen, main=main, bound=mask))
    return setting.status, setting.effective


@pytest.mark.parametrize(
    ("asked", "shares", "status", "effective"),
    [
        (1, [0.05, 0.95], "applied", "1"),  # it hands the work to the one worker and waits
        (1, [0.9], "applied", "1"),  # it does the work itself
        (1, [0.05, 0.5, 0.5], "ignored", "2"),  # two workers
        (1, [0.5, 0.7], "ignored", "2"),  # it works beside the worker: too much processor time
        (2, [0.05, 0.95, 0.9], "applied", "2"),
        (2, [0.05, 0.95], "adjusted", "1"),
        (2, [0.05, 0.9, 0.9, 0.1], "ignored", "3"),
        (2, [0.9], "ignored", "1"),  # there are no two threads at all
    ],
)
def test_a_main_thread_that_dispatches_is_no_pool_thread(
    asked: int, shares: list[float], status: str, effective: str
) -> None:
    assert judge_pool(asked, shares, main=0) == (status, effective)


def test_without_a_declaration_every_thread_counts() -> None:
    assert judge_pool(1, [0.2, 0.8]) == ("ignored", "2")


@pytest.mark.parametrize(
    ("bound", "cpus", "shares", "status"),
    [
        ("0", "0", [0.3, 0.3, 0.3], "applied"),  # three threads on the one processor they may use
        ("0", "0-1", [0.3, 0.3, 0.3], "ignored"),  # somebody undid the mask
        ("0-1", "0-1", [0.3, 0.3, 0.3], "ignored"),  # a mask that is wider than what was asked
        ("0", "0", [0.6, 0.6], "ignored"),  # cannot be: more processor time than the mask allows
    ],
)
def test_a_mask_bounds_what_no_setting_reaches(
    bound: str, cpus: str, shares: list[float], status: str
) -> None:
    assert judge_pool(1, shares, bound=bound, cpus=cpus)[0] == status


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("tf_data_private", True),  # what the kernel keeps of a longer name
        ("tf_data", True),
        ("tf_Compute", False),
        ("watchdog", True),
        ("watchdog2", False),
        ("a_name_longer_t", True),
        ("", False),
    ],
)
def test_helper_threads_have_patterns(name: str, is_one: bool) -> None:
    assert is_helper(name, ("tf_data*", "watchdog", "a_name_longer_than_the_kernel_keeps")) is is_one


@pytest.mark.parametrize(
    ("asked", "masks", "status"),
    [("0", "0", "applied"), ("0-1", "0-1", "applied"), ("0-1", "1", "adjusted"), ("0", "0-1", "ignored")],
)
def test_affinity_is_what_the_kernel_says(asked: str, masks: str, status: str) -> None:
    assert judge("affinity", asked, evidence(None, [0.9], cpus=masks)).status == status


@pytest.mark.parametrize(
    ("effective", "status"), [("5", "applied"), ("5.0", "applied"), ("6", "ignored"), (None, "unverifiable")]
)
def test_other_settings_are_what_the_library_says(effective: str | None, status: str) -> None:
    seen = Evidence(readings={"any.knob": Reading(effective=effective, how_read="knob()")})
    setting = judge("any.knob", "5", seen)
    assert setting.status == status
    assert setting.how_read == "knob()"


def test_what_nobody_asked_is_recorded_too() -> None:
    seen = Evidence(readings={"any.knob": Reading(effective="5", how_read="knob()")})
    (setting,) = judge_settings(case(), seen)
    assert (setting.asked, setting.effective) == (None, "5")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"threads": "0"}, "threads='0': expected a whole number from 1"),
        ({"threads": "two"}, "threads='two'"),
        ({"threads": "-1"}, "threads='-1'"),
        ({"affinity": "0,x"}, "expected cores as in"),
        ({"affinity": "3-1"}, "expected cores as in"),
        ({"any.nob": "1"}, "Did you mean 'any.knob'?"),
    ],
)
def test_bad_values_are_refused_before_anything_starts(settings: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as raised:
        validate_settings(case(**settings), CONTENDER)
    assert said in str(raised.value)


@pytest.mark.parametrize(("name", "value"), [("threads", "2"), ("affinity", "0-1"), ("affinity", "1")])
def test_more_than_this_machine_has(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with one CPU: one value asked is a mistake, a value of an axis is a row."""
    monkeypatch.setattr(settings_module, "allowed_cpus", lambda: frozenset({0}))
    with pytest.raises(InputError, match=name):
        validate_settings(case(**{name: value}), CONTENDER)
    with pytest.raises(Unavailable, match=name):
        validate_settings(case(**{name: value}), CONTENDER, spanned={name})


def test_sets_of_cores() -> None:
    assert parse_cpus("0-2+5") == {0, 1, 2, 5}
    assert format_cpus({5, 0, 1, 2}) == "0-2+5"
    assert format_cpus(parse_cpus("0,2")) == "0+2"


@pytest.mark.effect("affinity")
@pytest.mark.parametrize("backend", ["eigen", "null", "reference"])
def test_affinity_takes_effect(tmp_path: Path, backend: str) -> None:
    core = str(max(os.sched_getaffinity(0)))
    record = run_launch(make_plan(tmp_path / "launch", backend, settings={"affinity": core, "threads": "1"}))
    assert record.outcome == "ok", words(record)
    found = {setting.name: setting for setting in record.settings}
    assert (found["affinity"].effective, found["affinity"].status) == (core, "applied")
    assert found["threads"].status == "applied"


@pytest.mark.effect("threads")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_two_threads_work(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings={"threads": "2"}))
    assert record.outcome == "ok", words(record)
    threads = next(setting for setting in record.settings if setting.name == "threads")
    assert threads.effective == "2"
    assert threads.status == "applied"
    assert "CPU time over wall time" in threads.how_read
