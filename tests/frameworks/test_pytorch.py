"""PyTorch, eager: every layer and task proven, settings applied and read back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import make_plan, small_network, words

from timetrial.launch import resolve, run_launch
from timetrial.launch.job import make_job, write_job

torch = pytest.importorskip("torch", reason="machine: the running interpreter has no torch")

CORES = len(os.sched_getaffinity(0))

ALL_LAYERS = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 5, kernel = [3, 5], padding = "same", bias = false }

[[nodes]]
name = "tanh1"
kind = "tanh"

[[nodes]]
name = "pool1"
kind = "avg_pool2d"
attributes = { kernel = [3, 2], stride = [2, 2], padding = [1, 0] }

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, stride = [2, 1], padding = [0, 1] }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "pool2"
kind = "max_pool2d"
attributes = { kernel = 3, stride = 2, padding = 1 }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 16 }

[[nodes]]
name = "sigmoid1"
kind = "sigmoid"

[[nodes]]
name = "fc2"
kind = "dense"
attributes = { units = "classes", bias = false }

[[nodes]]
name = "loss"
kind = "LOSS"
inputs = ["fc2", "labels"]
"""


@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "squared_error"])
def test_every_layer_is_proven(tmp_path: Path, loss: str) -> None:
    network = tmp_path / "all.toml"
    network.write_text(ALL_LAYERS.replace("LOSS", loss))
    record = run_launch(make_plan(tmp_path / "launch", "pytorch", network=str(network), purpose="proof"))
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    compared = {comparison.tensor for comparison in record.parity.comparisons}
    nodes = ("conv1", "tanh1", "pool1", "conv2", "relu2", "pool2", "flat", "fc1", "sigmoid1", "fc2")
    assert {f"activation {name}" for name in nodes} <= compared
    assert {"gradient conv1.weight", "gradient fc1.bias", "parameter conv2.bias", "output"} <= compared


@pytest.mark.parametrize("task", ["gradient", "forward"])
def test_tasks_without_update(tmp_path: Path, task: str) -> None:
    network = small_network(tmp_path)
    for purpose in ("proof", "speed"):
        folder = tmp_path / purpose
        settings = {"threads": "1"}
        plan = make_plan(folder, "pytorch", network=network, purpose=purpose, task=task, settings=settings)
        record = run_launch(plan)
        assert record.outcome == "ok", words(record)
        if record.parity is not None:
            assert record.parity.status == "passed"


@pytest.mark.parametrize("threads", range(1, min(CORES, 2) + 1))
def test_threads_are_applied_and_read_back(tmp_path: Path, threads: int) -> None:
    settings = {"threads": str(threads)}
    proof = run_launch(make_plan(tmp_path / "proof", "pytorch", purpose="proof", settings=settings))
    timed = run_launch(make_plan(tmp_path / "timed", "pytorch", settings=settings, proof=proof.parity))
    assert timed.outcome == "ok", words(timed)
    found = next(setting for setting in timed.settings if setting.name == "threads")
    assert found.status in ("applied", "adjusted")
    assert "torch.get_num_threads()" in found.how_read
    assert "omp_get_max_threads()" in found.how_read
    assert timed.environment["OMP_NUM_THREADS"] == str(threads)
    assert timed.facts["torch.version"] == torch.__version__
    assert {"onednn.version", "torch.cpu_capability"} <= timed.facts.keys()
    assert any("libtorch_cpu" in library.path for library in timed.libraries)
    assert {"detailed", "steady"} <= {segment.kind for segment in timed.segments}


def test_a_profiled_step_trains_as_a_step_does(tmp_path: Path, runtime: Any) -> None:
    plan = make_plan(tmp_path, "pytorch", network=small_network(tmp_path), purpose="profile")
    contender = resolve(plan.case)
    write_job(plan, make_job(plan, contender))
    job = runtime("job").Job(str(tmp_path / "job.json"))
    job.read_parameters()
    generator = np.random.default_rng(1)
    images = generator.normal(size=job.image_shape).astype(np.float32)
    labels = generator.integers(0, job.classes, job.batch_size)
    trained = []
    for verb in ("step", "profile"):
        adapter = runtime("loading").load_adapter(str(contender.path))
        adapter.load({})
        adapter.build(job, images, labels)
        found = [getattr(adapter, verb)() for _ in range(3)][-1]
        trained.append(adapter.tensors("parameter"))
    for name, expected in trained[0].items():
        np.testing.assert_allclose(trained[1][name], expected, rtol=1e-6, atol=1e-7, err_msg=name)
    named = {(node, direction) for node, direction, _ in found}
    forward = {(node.name, "forward") for node in job.nodes if node.name != job.loss}
    backward = {(node, "backward") for node, _ in forward}
    assert named == forward | backward | {("loss", "loss"), ("*", "update")}
    assert all(ns > 0 for *_, ns in found)


def test_profile_launch(tmp_path: Path) -> None:
    network = small_network(tmp_path)
    record = run_launch(make_plan(tmp_path / "launch", "pytorch", network=network, purpose="profile"))
    assert record.outcome == "ok", words(record)
    assert record.profiled_steps > 0
    assert "profiles" in record.backend["flags"]


def test_learning_goes_as_anybody_elses(tmp_path: Path) -> None:
    network, settings = small_network(tmp_path), {"threads": "1"}
    losses = []
    for backend in ("pytorch", "eigen"):
        plan = make_plan(
            tmp_path / backend,
            backend,
            network=network,
            purpose="learning",
            settings=settings,
            learning_rate=0.001,
        )
        record = run_launch(plan)
        assert record.outcome == "ok", words(record)
        losses.append([evaluation.loss for evaluation in record.evaluations])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
