"""Values that are dropped while a network learns: the batch brings the mask, the same for every contender, so
dropout is proven step by step like any other layer; each way to get it wrong is caught."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import make_plan, words, workload
from own_networks import DROPPED
from twins import Bench
from ways import PURPOSES_AND_TASKS

from timetrial.cases.case import Workload
from timetrial.launch.run import run_launch
from timetrial.questions.observed import Batches
from timetrial.workloads import prepare

PLANTED = str(Path(__file__).parents[1] / "frameworks" / "planted")


@pytest.fixture
def network(tmp_path: Path) -> str:
    file = tmp_path / "dropped.toml"
    file.write_text(DROPPED, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(("purpose", "task"), PURPOSES_AND_TASKS)
@pytest.mark.parametrize("backend", ["eigen", "onednn", "cblas", "libtorch", "pytorch"])
def test_it_is_proven_and_timed(tmp_path: Path, network: str, backend: str, purpose: str, task: str) -> None:
    if backend in ("libtorch", "pytorch"):
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    plan = make_plan(tmp_path / "launch", backend, network=network, purpose=purpose, task=task)
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    judged = record.parity if purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed", judged


def test_the_numpy_framework_passes(tmp_path: Path, network: str) -> None:
    plan = make_plan(tmp_path / "launch", PLANTED, network=network, purpose="proof")
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("mask_ignored", "activation drop1"),
        ("mask_forward_only", "gradient conv1.bias"),
        ("mask_in_inference", "first evaluation: output"),
        ("mask_of_before", "second batch: "),
        ("own_mask", "activation drop1"),
        ("unscaled_mask", "activation drop1"),
    ],
)
def test_a_defect_is_caught_and_named(network: str, defect: str, tensor: str) -> None:
    parity = Bench.of(network, "synthetic", batch_size=8).proof(defect)
    assert parity.status == "failed"
    assert tensor in (parity.reason or ""), parity.reason


@pytest.mark.attempt
def test_a_defect_is_caught_behind_the_timed_part_too(network: str) -> None:
    # At a larger rate every relu is soon off, and the output the same for every image.
    bench = Bench.of(network, "synthetic", batch_size=8, learning_rate=0.01)
    assert bench.end("none").status == "passed"
    for defect in ("mask_ignored", "mask_forward_only", "mask_in_inference", "own_mask"):
        assert bench.end(defect).status == "failed", defect


# What the batches bring.


def _workload(network: str, **changes: Any) -> Workload:
    return dataclasses.replace(workload(network, "synthetic"), **changes)


def test_each_step_has_masks_of_its_own(network: str) -> None:
    prepared = prepare(_workload(network, batch_size=8), seed=1, epochs=2)
    streams = prepared.job["streams"]
    assert sorted(streams["train"]["drawn"]) == ["drop1.mask", "drop2.mask"]
    assert "drop1.mask" not in streams["train"]["tensors"]
    assert "drop1.mask" in streams["proof"]["tensors"]  # there each sample has its own
    assert not [name for name in streams["test"]["tensors"] if name.endswith(".mask")]
    pool = np.load(streams["train"]["drawn"]["drop1.mask"])
    assert pool.dtype == np.float32
    assert pool.shape == (997, 4, 26, 26)
    assert set(np.unique(pool)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(np.mean(pool == 0) - 0.25) < 0.005
    assert abs(np.mean(np.load(streams["train"]["drawn"]["drop2.mask"]) == 0) - 0.5) < 0.005
    batches = Batches(streams)
    rows = [batches.batch("train", row)["drop1.mask"] for row in range(3)]
    assert all(np.array_equal(rows[step], pool[8 * step : 8 * step + 8]) for step in range(3))
    far = batches.batch("train", 997 // 8)["drop1.mask"]
    assert np.array_equal(far, np.concatenate([pool[992:], pool[:3]]))


def test_the_seed_and_the_rate_draw_them(network: str, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(DROPPED.replace("0.25", "0.35"), encoding="utf-8")
    one, same, seed, rate = (
        prepare(_workload(which, batch_size=8), seed=number, epochs=1)
        for which, number in ((network, 1), (network, 1), (network, 2), (str(other), 1))
    )
    files = [each.job["streams"]["train"]["drawn"]["drop1.mask"] for each in (one, same, seed, rate)]
    assert files[0] == files[1]
    assert len(set(files)) == 3
    assert one.fingerprint != rate.fingerprint


def test_a_forward_pass_gathers_no_masks(tmp_path: Path, network: str) -> None:
    plan = make_plan(tmp_path / "launch", "eigen", network=network, task="forward")
    assert run_launch(plan).outcome == "ok"
    job = json.loads((tmp_path / "launch" / "job.json").read_text(encoding="utf-8"))
    assert "drawn" not in job["streams"]["train"]


@pytest.mark.attempt
@pytest.mark.parametrize("backend", ["eigen", PLANTED])
@pytest.mark.parametrize("change", ["missing", "narrow", "empty"])
def test_masks_that_do_not_fit_are_named(tmp_path: Path, network: str, backend: str, change: str) -> None:
    plan = make_plan(tmp_path / "launch", backend, network=network, purpose="proof")
    file = tmp_path / "mask.npy"
    shape = {"missing": None, "narrow": (9, 3), "empty": (0, 4, 26, 26)}[change]
    train = dict(plan.prepared.job["streams"]["train"])
    if shape is None:
        train["drawn"] = {}
    else:
        np.save(file, np.ones(shape, np.float32))
        train["drawn"] = {**train["drawn"], "drop1.mask": str(file)}
    streams = {**plan.prepared.job["streams"], "train": train}
    prepared = dataclasses.replace(plan.prepared, job={**plan.prepared.job, "streams": streams})
    record = run_launch(dataclasses.replace(plan, prepared=prepared))
    assert record.outcome == "crash", words(record)
    assert "drop1.mask" in (record.reason or "") if shape is None else "mask.npy" in (record.reason or "")
