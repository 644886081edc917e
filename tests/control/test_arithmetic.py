"""The settings determinism, onednn.math_mode and inter_op_threads: shown by numbers and getters."""

from __future__ import annotations

import importlib.util
import os
from functools import partial
from pathlib import Path

import pytest
from launching import make_plan, words, workload

from timetrial.agreement.precision import F32, REDUCED, precision_of
from timetrial.cases.case import Case
from timetrial.contenders import resolve, validate_settings
from timetrial.control.arithmetic import Proven, judge_determinism, judge_math_mode
from timetrial.core.cpu import cpu_flags
from timetrial.errors import InputError, Unavailable
from timetrial.launch import run_launch
from timetrial.processes.events import Reading
from timetrial.records.model import LaunchRecord, Parity

TORCH = importlib.util.find_spec("torch") is not None
SAYS_ON, SAYS_OFF = (Reading(effective=word, how_read="getter()") for word in ("on", "off"))
SILENT = Reading()


def found(record: LaunchRecord, name: str) -> tuple[str | None, str]:
    [one] = [one for one in record.settings if one.name == name]
    return one.effective, one.status


@pytest.mark.parametrize("backend", ["eigen", "onednn"])
def test_bits_that_repeat_are_determinism(tmp_path: Path, backend: str) -> None:
    asked = {"determinism": "on", "threads": "1"}
    record = run_launch(make_plan(tmp_path / "proof", backend, settings=asked, purpose="proof"))
    assert record.outcome == "ok", words(record)
    assert found(record, "determinism") == ("on", "applied")
    timed = run_launch(make_plan(tmp_path / "speed", backend, settings=asked, proof=record.parity))
    assert found(timed, "determinism") == ("on", "applied")
    alone = run_launch(make_plan(tmp_path / "alone", backend, settings=asked))
    assert found(alone, "determinism") == (None, "unverifiable")


@pytest.mark.effect("determinism")
@pytest.mark.attempt
@pytest.mark.parametrize(
    ("asked", "reading", "proven", "effective", "status"),
    [
        ("on", SILENT, Proven(same_bits=True), "on", "applied"),
        ("on", SAYS_ON, Proven(same_bits=True), "on", "applied"),
        ("on", SAYS_ON, Proven(same_bits=False), "bits differ", "ignored"),  # a getter that lies
        ("on", SILENT, Proven(same_bits=False), "bits differ", "ignored"),
        ("on", SAYS_OFF, Proven(same_bits=True), "off", "ignored"),
        ("on", SAYS_ON, Proven(), "on", "unverifiable"),
        ("off", SAYS_OFF, Proven(same_bits=True), "off", "applied"),
        ("off", SILENT, Proven(same_bits=False), "off", "applied"),
        ("off", SAYS_ON, Proven(), "on", "ignored"),
    ],
)
def test_bits_decide_whatever_a_getter_says(
    asked: str, reading: Reading, proven: Proven, effective: str, status: str
) -> None:
    judged = judge_determinism(asked, reading, proven)
    assert (judged.effective, judged.status) == (effective, status)


@pytest.mark.effect("onednn.math_mode")
@pytest.mark.parametrize("mode", ["strict", "bf16"])
def test_the_math_mode_is_in_force_and_its_class_is_said(tmp_path: Path, mode: str) -> None:
    """Where the CPU multiplies in bf16, errors show it; elsewhere that it changes nothing."""
    asked = {"onednn.math_mode": mode, "threads": "1"}
    plan = partial(make_plan, backend="onednn", batch_size=32, settings=asked)
    record = run_launch(plan(tmp_path / "proof", purpose="proof"))
    assert record.outcome == "ok", words(record)
    assert found(record, "onednn.math_mode") == (mode, "applied")
    assert record.parity is not None
    reduced = "reduced" in record.parity.notes
    assert not (reduced and mode == "strict")
    if mode != "strict" and "amx_bf16" in cpu_flags():
        assert reduced
    timed = run_launch(plan(tmp_path / "speed", proof=record.parity))
    assert timed.outcome == "ok", words(timed)
    expected = (mode, "applied") if reduced or mode == "strict" else ("strict", "adjusted")
    assert found(timed, "onednn.math_mode") == expected


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("asked", "reading", "proven", "effective", "status"),
    [
        ("bf16", Reading(effective="bf16", how_read="g()"), Proven(reduced=True), "bf16", "applied"),
        ("bf16", SILENT, Proven(reduced=True), "bf16", "applied"),
        ("bf16", Reading(effective="bf16", how_read="g()"), Proven(reduced=False), "strict", "adjusted"),
        ("bf16", SILENT, Proven(reduced=False), "strict", "adjusted"),
        ("bf16", SILENT, Proven(), None, "unverifiable"),
        ("bf16", Reading(effective="strict", how_read="g()"), Proven(reduced=True), "strict", "ignored"),
        ("strict", SILENT, Proven(reduced=False), "strict", "applied"),
    ],
)
def test_errors_decide_whether_a_mode_has_an_effect(
    asked: str, reading: Reading, proven: Proven, effective: str | None, status: str
) -> None:
    judged = judge_math_mode(asked, reading, proven)
    assert (judged.effective, judged.status) == (effective, status)


@pytest.mark.attempt
def test_who_computes_in_less_unasked_is_wrong(tmp_path: Path) -> None:
    """By the environment, past the setting: it is judged as f32."""
    if not TORCH or "amx_bf16" not in cpu_flags():
        pytest.skip("machine: no CPU that multiplies in bf16, or no PyTorch")
    hidden = {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16", "OMP_NUM_THREADS": "1"}
    plan = make_plan(tmp_path / "hidden", "pytorch", network="lenet5", purpose="proof", environment=hidden)
    record = run_launch(plan)
    assert record.outcome == "wrong"
    assert record.reason is not None
    assert "activation conv1" in record.reason


def test_only_a_setting_makes_the_class_wider() -> None:
    assert precision_of({}) is precision_of({"onednn.math_mode": "strict"}) is F32
    assert precision_of({"onednn.math_mode": "bf16"}) is REDUCED
    assert Proven.of(None) == Proven.of(Parity(status="unproven")) == Proven()
    assert Proven.of(Parity(status="passed", deterministic=True)) == Proven(same_bits=True, reduced=False)


def test_a_mode_that_this_onednn_lacks() -> None:
    case = Case("onednn", workload("mlp"), settings={"onednn.math_mode": "fp8"})
    with pytest.raises(InputError, match=r"onednn\.math_mode='fp8': expected strict or bf16"):
        validate_settings(case, resolve(case))


@pytest.mark.skipif(not TORCH, reason="framework: PyTorch is not installed")
def test_pytorch_has_its_own_switches(tmp_path: Path) -> None:
    asked = {"inter_op_threads": "1", "determinism": "on", "threads": "1"}
    record = run_launch(make_plan(tmp_path / "launch", "pytorch", settings=asked, purpose="proof"))
    assert record.outcome == "ok", words(record)
    assert found(record, "inter_op_threads") == ("1", "applied")
    assert found(record, "determinism") == ("on", "applied")
    plain = run_launch(make_plan(tmp_path / "plain", "pytorch", settings={"threads": "1"}, purpose="proof"))
    assert found(plain, "determinism") == ("off", "applied")
    if len(os.sched_getaffinity(0)) > 1:
        assert found(plain, "inter_op_threads")[0] != "1"


def test_bad_values() -> None:
    case = Case("eigen", workload("mlp"), settings={"inter_op_threads": "1"})
    with pytest.raises(InputError, match="backend 'eigen' has no setting 'inter_op_threads'"):
        validate_settings(case, resolve(case))
    with pytest.raises(Unavailable, match="backend 'eigen' has no setting 'inter_op_threads'"):
        validate_settings(case, resolve(case), spanned=["inter_op_threads"])
    case = Case("eigen", workload("mlp"), settings={"determinism": "yes"})
    with pytest.raises(InputError, match="determinism='yes': expected on or off"):
        validate_settings(case, resolve(case))
