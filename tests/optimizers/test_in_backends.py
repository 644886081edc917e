"""Every rule with every option, through the whole way of a launch: proven state by state, timed, and judged
again at the end of the timed part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launching import SHORT, make_plan, small_network, words
from sequence_networks import TABLE

from timetrial.environments import locate, shipped_frameworks
from timetrial.errors import Unavailable
from timetrial.launch import Limits
from timetrial.launch.run import run_launch
from timetrial.optimizers import OPTIMIZERS
from timetrial.records.model import LaunchRecord

pytestmark = pytest.mark.usefixtures("compiled_once")
# What `rate_inside` is called, and whether the framework has it, differs; everything else is everyone's.
OPTIONS: list[dict[str, Any]] = [
    {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01},
    {"name": "sgd", "momentum": 0.9, "nesterov": True},
    {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01, "decoupled": True},
    {"name": "sgd", "momentum": 0.9, "rate_inside": True, "schedule": {"name": "cosine"}},
    {"name": "sgd", "clip_norm": 0.5},
    *({"name": name, "weight_decay": 0.01} for name in OPTIMIZERS if name != "sgd"),
    {
        "name": "adamw",
        "clip_norm": 0.5,
        "schedule": {"name": "step", "every": 5, "factor": 0.5, "warmup": 4},
    },
]
NATIVE = ("reference", "eigen", "onednn", "libtorch")
# Name, or name@version, and behind a stroke the mode.
INSTALLED = (
    "jax",
    "tensorflow/graph",
    "tensorflow/eager",
    "tensorflow/xla",
    "tensorflow@1.15.5",
    "tensorflow@1.4.0",
    "chainer",
    "mxnet/imperative",
    "mxnet/hybridized",
    "mxnet/symbolic",
    "mxnet@1.4.1/imperative",
    "theano",
    "pytensor/c",
    "pytensor/numba",
    "paddle/dynamic",
    "paddle/static",
    "keras/tensorflow",
    "keras/jax",
    "keras/torch",
)
LACKS = {
    "libtorch": ("rate_inside",),
    "pytorch": ("rate_inside", "decoupled"),
    "jax": ("rate_inside", "adagrad"),
    "paddle/dynamic": ("rate_inside", "rmsprop"),
    "paddle/static": ("rate_inside", "rmsprop"),
}


@pytest.mark.parametrize("backend", ["eigen", "pytorch", pytest.param("jax", marks=pytest.mark.full)])
def test_the_end_of_a_timed_part_is_judged_by_the_step_it_is(tmp_path: Path, backend: str) -> None:
    """Bias corrections, clipping and the rates of a schedule, thousands of steps after a reset."""
    _is_judged(_launch(tmp_path, backend, OPTIONS[-1], "speed"), OPTIONS[-1])


def _id(optimizer: dict[str, Any]) -> str:
    return "-".join([optimizer["name"], *(key for key, value in optimizer.items() if value is True),
                     *(key for key in ("clip_norm", "schedule") if key in optimizer)])  # fmt: skip


def _launch(folder: Path, backend: str, optimizer: dict[str, Any], purpose: str, **work: Any) -> LaunchRecord:
    if backend in ("libtorch", "pytorch"):
        pytest.importorskip("torch", reason="machine: the running interpreter has no torch")
    settings, measure = {"threads": "1"}, SHORT
    if backend in INSTALLED:
        measure = replace(SHORT, limits=Limits())  # a user's: a framework may compile for a minute
        backend, _, mode = backend.partition("/")
        name, _, version = backend.partition("@")
        try:
            locate(shipped_frameworks()[name], version, None)
        except Unavailable as reason:
            pytest.skip(f"framework {backend}: {reason}")
        settings.update({"mode": mode} if mode else {})
    plan = make_plan(
        folder / purpose,
        backend,
        purpose=purpose,
        optimizer={"learning_rate": 0.003, **optimizer},
        settings=settings,
        measure=measure,
        **(work or {"network": small_network(folder)}),
    )
    return run_launch(plan)


# A framework takes seconds to start: every day it shows a plain rule, and one with everything.
EVERY_DAY = [
    *((backend, optimizer) for backend in NATIVE for optimizer in OPTIONS),
    ("pytorch", OPTIONS[1]),
    ("pytorch", OPTIONS[-1]),
]
TWO_RULES = [OPTIONS[1], OPTIONS[-1]]


def _launches() -> Iterator[object]:
    """The end of a timed part is judged by the same court: for what takes seconds to start two rules show
    it. `pytensor/numba` compiles for minutes, and for each rule the graph that `pytensor/c` compiles too."""
    for backend in (*NATIVE, "cblas", "pytorch", *INSTALLED):
        for optimizer in TWO_RULES if backend == "pytensor/numba" else OPTIONS:
            for purpose in ("proof", "speed"):
                if purpose == "speed" and backend in INSTALLED and optimizer not in TWO_RULES:
                    continue
                every_day = purpose == "proof" and (backend, optimizer) in EVERY_DAY
                marks = [] if every_day else [pytest.mark.full]
                name = f"{backend}-{_id(optimizer)}-{purpose}"
                yield pytest.param(backend, optimizer, purpose, id=name, marks=marks)


@pytest.mark.parametrize(("backend", "optimizer", "purpose"), list(_launches()))
def test_it_is_proven_and_judged_again_at_the_end(
    tmp_path: Path, backend: str, optimizer: dict[str, Any], purpose: str
) -> None:
    record = _launch(tmp_path, backend, optimizer, purpose)
    lacking = [one for one in LACKS.get(backend, ()) if one in optimizer or one == optimizer["name"]]
    if lacking:
        assert record.outcome == "unavailable", words(record)
        assert lacking[0] in (record.reason or "")
        return
    _is_judged(record, optimizer)


@pytest.mark.parametrize(
    "backend",
    ["eigen", "onednn", "pytorch", *(pytest.param(one, marks=pytest.mark.full) for one in INSTALLED)],
)
def test_rows_of_a_table_that_are_read_twice(tmp_path: Path, backend: str) -> None:
    """Their gradient is a sum before anything squares it: Keras 3.15 by itself squares the parts."""
    file = tmp_path / "table.toml"
    file.write_text(TABLE)
    optimizer = {"name": "adam"}
    work = {"network": str(file), "dataset": "synthetic-sentences@20", "batch_size": 6}
    record = _launch(tmp_path, backend, optimizer, "proof", **work)
    if record.outcome == "unavailable":
        assert (record.reason or "").startswith("the backend takes one input")
        return
    _is_judged(record, optimizer)


def _is_judged(record: LaunchRecord, optimizer: dict[str, Any]) -> None:
    assert record.outcome == "ok", words(record)
    judged = record.parity if record.purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed", judged
    compared = {comparison.tensor.split(": ")[-1].split(" ")[0] for comparison in judged.comparisons}
    shown = {state.name for state in OPTIMIZERS[optimizer["name"]].states}
    if optimizer["name"] != "sgd" or optimizer.get("momentum"):
        assert shown <= compared, compared
