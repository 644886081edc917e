"""Plans of small launches for the tests of launch, parity, runtime and frameworks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timetrial.cases.case import Case, Workload
from timetrial.launch import LaunchPlan, Limits, Measure
from timetrial.records.model import LaunchRecord
from timetrial.workloads import prepare

MS = 1_000_000
SHORT = Measure(
    min_ns=40 * MS,
    budget_ns=80 * MS,
    warmup_ns=20 * MS,
    steady_ns=60 * MS,
    max_steps=2000,
    epochs=2,
    detailed_steps=3,
    limits=Limits(start_timeout_s=60.0, progress_timeout_s=20.0),
)

SMALL_NETWORK = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 4, kernel = 5, padding = [0, 2] }

[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 2 }

[[nodes]]
name = "relu1"
kind = "relu"

[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, stride = [2, 1] }

[[nodes]]
name = "relu2"
kind = "relu"

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 12 }

[[nodes]]
name = "relu3"
kind = "relu"

[[nodes]]
name = "square"
kind = "dense"
attributes = { units = 12 }

[[nodes]]
name = "relu4"
kind = "relu"

[[nodes]]
name = "fc2"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc2", "labels"]
"""


def small_network(folder: Path) -> str:
    """Swapped strides and swapped paddings give layers of other shapes and the same size; `square` can be
    transposed without anyone's complaint. The path to its file."""
    path = folder / "small.toml"
    path.write_text(SMALL_NETWORK)
    return str(path)


def workload(
    network: str,
    dataset: str = "synthetic",
    batch_size: int = 16,
    learning_rate: float = 0.02,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> Workload:
    return Workload(
        network=network,
        dataset=dataset,
        batch_size=batch_size,
        optimizer={
            "name": "sgd",
            "learning_rate": learning_rate,
            "momentum": momentum,
            "weight_decay": weight_decay,
        },
    )


def make_plan(
    folder: Path,
    backend: str,
    *,
    network: str = "mlp",
    settings: Mapping[str, str] | None = None,
    purpose: Any = "speed",
    measure: Measure = SHORT,
    task: str = "train",
    seed: int = 1,
    dataset: str = "synthetic",
    batch_size: int = 16,
    learning_rate: float = 0.02,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    optimizer: Mapping[str, Any] | None = None,
    buckets: int = 1,
    **more: Any,
) -> LaunchPlan:
    """Of plain SGD with these numbers, unless another `optimizer` is given."""
    work = workload(network, dataset, batch_size, learning_rate, momentum, weight_decay)
    work = dataclasses.replace(work, buckets=buckets)
    if optimizer is not None:
        work = dataclasses.replace(work, optimizer=optimizer)
    case = Case(backend=backend, workload=work, task=task, settings=dict(settings or {}))
    prepared = prepare(work, seed=seed, epochs=2, reads_data=backend != "null")
    return LaunchPlan(
        case=case, prepared=prepared, purpose=purpose, folder=folder, measure=measure, seed=seed, **more
    )


def words(record: LaunchRecord) -> str:
    """For the message of a failed assertion."""
    return f"{record.outcome}: {record.reason}\n{record.stderr}"
