"""The settings openmp.*: read back from what every runtime of the process prints, and from the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control import openmp
from timetrial.control.openmp import displayed
from timetrial.errors import InputError
from timetrial.launch import run_launch
from timetrial.records.model import LaunchRecord

GNU = """OPENMP DISPLAY ENVIRONMENT BEGIN
  _OPENMP = '201511'
  OMP_DYNAMIC = 'FALSE'
  OMP_PLACES = '{0},{1}'
  OMP_WAIT_POLICY = 'PASSIVE'
OPENMP DISPLAY ENVIRONMENT END
"""
LLVM = "   [host] OMP_WAIT_POLICY='ACTIVE'\n"


def launched(folder: Path, backend: str = "onednn", **settings: str) -> LaunchRecord:
    asked = {name.replace("openmp_", "openmp."): value for name, value in settings.items()}
    return run_launch(make_plan(folder / "launch", backend, settings=asked))


@pytest.mark.parametrize("policy", ["passive", "active"])
def test_the_runtime_says_how_it_waits(tmp_path: Path, policy: str) -> None:
    record = launched(tmp_path, openmp_wait_policy=policy, openmp_dynamic="false")
    assert record.outcome == "ok", words(record)
    found = {one.name: (one.effective, one.status) for one in record.settings}
    assert found["openmp.wait_policy"] == (policy, "applied")
    assert found["openmp.dynamic"] == ("false", "applied")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="machine: one CPU")
def test_threads_stay_at_their_places(tmp_path: Path) -> None:
    settings = {"threads": "2", "openmp_proc_bind": "close", "openmp_places": "threads"}
    record = launched(tmp_path, **settings)
    assert record.outcome == "ok", words(record)
    found = {one.name: (one.effective, one.status) for one in record.settings}
    assert found["openmp.proc_bind"] == ("close", "applied")
    assert found["openmp.places"][1] == "applied"
    # The kernel agrees: there are threads at two places.
    assert len({one.allowed_cpus for one in record.threads if one.allowed_cpus.isdecimal()}) >= 2


@pytest.mark.attempt
def test_without_openmp_nothing_was_applied(tmp_path: Path) -> None:
    record = launched(tmp_path, "eigen", openmp_wait_policy="passive")
    assert record.outcome == "mismatch"
    assert record.reason is not None
    assert "openmp.wait_policy asked passive, in force no OpenMP runtime that says so" in record.reason


def test_what_runtimes_print() -> None:
    assert displayed(GNU + LLVM)["OMP_WAIT_POLICY"] == ["passive", "active"]
    assert displayed("Core: Haswell\n") == {}
    name = "openmp.wait_policy"
    assert openmp.judge(name, "passive", displayed(GNU)).status == "applied"
    assert openmp.judge("openmp.places", "cores", displayed(GNU)).effective == "{0},{1}"


@pytest.mark.attempt
def test_a_second_runtime_with_another_opinion_is_seen() -> None:
    judged = openmp.judge("openmp.wait_policy", "passive", displayed(GNU + LLVM))
    assert (judged.status, judged.effective) == ("ignored", "passive, active")


def test_bad_values() -> None:
    case = Case("onednn", workload("mlp"), settings={"openmp.wait_policy": "lazy"})
    with pytest.raises(InputError, match=r"openmp\.wait_policy='lazy': expected passive or active"):
        validate_settings(case, resolve(case))
