"""What only PyTorch's adapter has: getters, parts, a profile; test_conformance.py proves the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import SHORT, make_plan, small_network, words, workload
from sequence_networks import SERIES

import timetrial
from timetrial.cases.case import Case
from timetrial.contenders import resolve
from timetrial.control.paths import slower_paths
from timetrial.launch import LaunchPlan, run_launch
from timetrial.launch.job import make_job, write_job
from timetrial.records.model import LaunchRecord

torch = pytest.importorskip("torch", reason="machine: the running interpreter has no torch")


def test_the_record_names_its_getters_and_libraries(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path, "pytorch", settings={"threads": "1"}))
    assert record.outcome == "ok", words(record)
    read = {setting.name: setting for setting in record.settings}
    assert "torch.get_num_threads()" in read["threads"].how_read
    assert "omp_get_max_threads()" in read["threads"].how_read
    assert read["mode"].effective == "eager"
    assert record.environment["OMP_NUM_THREADS"] == "1"
    assert record.facts["torch.version"] == torch.__version__
    assert {"onednn.version", "torch.cpu_capability"} <= record.facts.keys()
    assert any("libtorch_cpu" in library.path for library in record.libraries)
    assert {"detailed", "steady"} <= {segment.kind for segment in record.segments}


# What it makes side by side, its pool does: as many threads as were asked, by the kernel.
FORKED = """
import os, sys
sys.path[:0] = sys.argv[2:]
from loading import load_adapter
adapter = load_adapter(sys.argv[1])
adapter.load({"inter_op_threads": os.environ["ASKED"], "threads": "1"})
import torch
before = len(os.listdir("/proc/self/task"))
@torch.jit.script
def double(x: torch.Tensor):
    return x + x
@torch.jit.script
def fork(x: torch.Tensor):
    return torch.jit.wait(torch.jit.fork(double, x))
fork(torch.ones(2))
print(len(os.listdir("/proc/self/task")) - before, flush=True)
# Not by way of the end of the interpreter, in which threads of that pool abort now and then.
os._exit(0)
"""


@pytest.mark.effect("inter_op_threads")
def test_as_many_operations_at_a_time_as_were_asked(tmp_path: Path) -> None:
    program = tmp_path / "forked.py"
    program.write_text(FORKED)
    adapter = resolve(Case("pytorch", workload("mlp"))).path
    folder = Path(timetrial.__file__).parent / "runtime"
    made = []
    for asked in ("1", "3"):
        script = [sys.executable, "-W", "ignore", program, adapter, folder]
        environment = {**os.environ, "ASKED": asked}
        done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
        made.append(int(done.stdout))
    assert made[1] - made[0] == 2


def _job_of(plan: LaunchPlan, runtime: Any) -> Any:
    """As the contender reads it."""
    write_job(plan, make_job(plan, resolve(plan.case)))
    job = runtime("job").Job(str(plan.folder / "job.json"))
    job.read_parameters()
    return job


@pytest.mark.effect("torch.mkldnn")
def test_the_way_through_an_lstm_is_read_from_torch(tmp_path: Path, runtime: Any) -> None:
    """It is torch's own choice: without its oneDNN it goes another one, and the row says what would help."""
    own = tmp_path / "own.toml"
    own.write_text(SERIES)
    plan = make_plan(tmp_path, "pytorch", network=str(own), dataset="synthetic-series", batch_size=6)
    job = _job_of(plan, runtime)
    batch = {name: np.ones(node.shape, node.dtype) for name, node in job.inputs.items()}
    found = {}
    for asked in ("true", "false"):
        adapter = runtime("loading").load_adapter(str(resolve(plan.case).path))
        try:
            adapter.load({"torch.mkldnn": asked})
            adapter.build(job, batch)
            found[asked] = adapter.facts()
            assert adapter.read_settings()["torch.mkldnn"][0] == asked
        finally:
            torch._C._set_mkldnn_enabled(True)  # of this process: as it was
    assert found["true"]["lstm forward"] == (
        "oneDNN's kernel (mkldnn_rnn_layer), all 24 steps of every sample"
    )
    assert found["false"]["lstm forward"] == "native loop over the steps, all 24 steps of every sample"
    assert slower_paths(found["true"]) == []
    (said,) = slower_paths(found["false"])
    assert said.startswith("'lstm': native loop over the steps, ")
    assert "torch.mkldnn=true gives it to oneDNN's kernel" in said


def test_a_profiled_step_trains_as_a_step_does(tmp_path: Path, runtime: Any) -> None:
    plan = make_plan(tmp_path, "pytorch", network=small_network(tmp_path), purpose="profile")
    contender, job = resolve(plan.case), _job_of(plan, runtime)
    generator = np.random.default_rng(1)
    images = generator.normal(size=job.inputs["images"].shape).astype(np.float32)
    batch = {"images": images, "labels": generator.integers(0, job.classes, job.batch_size)}
    trained = []
    for verb in ("step", "profile"):
        adapter = runtime("loading").load_adapter(str(contender.path))
        adapter.load({})
        adapter.build(job, batch)
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


@pytest.mark.full
def test_a_warm_launch_compiles_nothing(tmp_path: Path) -> None:
    """Neither kernels nor the headers, which torch keeps beside its cache."""
    proof = make_plan(tmp_path, "pytorch", network="mlp", settings={"mode": "compiled"}, purpose="proof")
    record = run_launch(proof)
    assert record.outcome == "ok", words(record)
    made = _compiled_in(record)
    assert {path.suffix for path in made} == {".gch", ".so"}
    timed = replace(proof, purpose="speed", folder=tmp_path / "timed", proof=record.parity, measure=SHORT)
    record = run_launch(timed)
    assert record.outcome == "ok", words(record)
    assert record.compile_cache is not None
    assert record.compile_cache.state == "warm"
    assert _compiled_in(record) == made


def _compiled_in(record: LaunchRecord) -> dict[Path, int]:
    """What a compiler wrote into the cache of a launch, and when."""
    assert record.compile_cache is not None
    assert record.compile_cache.path is not None
    files = Path(record.compile_cache.path).rglob("*")
    return {path: path.stat().st_mtime_ns for path in files if path.suffix in (".gch", ".so")}
