"""The setting nice: set by the supervisor, read of every thread from the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import niceness
from timetrial.control.habits import Habits
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch

OWN = os.getpriority(os.PRIO_PROCESS, 0)
OTHER, POLICY = os.SCHED_OTHER, os.SCHED_BATCH

GREEDY = """
import os

def make():
    os.setpriority(os.PRIO_PROCESS, 0, {value})
    return lambda: 1.0
"""


def check(word: str, *, spanned: bool = False) -> None:
    case = Case("eigen", workload("mlp"), settings={"nice": word})
    validate_settings(case, resolve(case), spanned=["nice"] if spanned else [])


@pytest.mark.effect("nice")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_every_thread_has_it(tmp_path: Path, threads: str) -> None:
    if int(threads) > len(os.sched_getaffinity(0)):
        pytest.skip("machine: one CPU")
    asked = str(min(19, OWN + 3))
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings={"nice": asked, "threads": threads}))
    assert record.outcome == "ok", words(record)
    found = {one.name: (one.effective, one.status) for one in record.settings}
    assert found["nice"] == (asked, "applied")
    assert "priority" not in found


@pytest.mark.attempt
def test_one_that_sets_its_own_is_no_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(GREEDY.format(value=min(19, OWN + 4)))
    monkeypatch.chdir(tmp_path)
    plan = make_plan(
        tmp_path / "launch", "mine:make", network="none", settings={"nice": str(min(18, OWN + 2))}
    )
    record = run_launch(plan)
    assert record.outcome == "mismatch"
    assert record.reason is not None
    assert "nice asked" in record.reason


def test_it_is_judged_by_all_threads() -> None:
    def judged(*urgencies: tuple[int, int]) -> tuple[str | None, str]:
        found = niceness.judge("5", Habits(urgencies=set(urgencies), given={(OTHER, 0)}))
        return found.effective, found.status

    assert judged((OTHER, 5)) == ("5", "applied")
    assert judged((OTHER, 5), (OTHER, 0)) == ("0, 5", "ignored")
    assert judged((POLICY, 5)) == ("5, under another policy", "ignored")
    assert judged() == (None, "unverifiable")


@pytest.mark.parametrize("word", ["20", "-21", "high", "", "1.5"])
def test_bad_values(word: str) -> None:
    with pytest.raises(InputError, match=f"nice='{word}': expected a whole number from -20 to 19"):
        check(word)


def test_less_needs_a_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(niceness, "_capabilities", lambda: 0)
    monkeypatch.setattr("resource.getrlimit", lambda _: (0, 0))
    check(str(OWN))
    with pytest.raises(Unavailable, match=rf"nice={OWN - 1}: this process may set {OWN} .*CAP_SYS_NICE"):
        check(str(OWN - 1))
    monkeypatch.setattr("resource.getrlimit", lambda _: (20 - OWN + 2, 0))  # as far as OWN - 2
    check(str(OWN - 2))
