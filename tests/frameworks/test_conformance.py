"""Every adapter that is installed, in every mode: all layers, losses, tasks and optimizer options proven
against the reference, threads applied and read back.

    pytest tests/frameworks/test_conformance.py -k "theano and 1.0.5"
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import kind_networks
import pytest
from launching import SHORT, make_plan, small_network, words
from own_networks import DROPPED, FANNED
from required import QUICK, framework_skip
from sequence_networks import (
    CARRIED,
    FULL,
    LANGUAGE,
    ROWS,
    SERIES,
    TIED,
    TRANSLATION,
    beside_an_lstm,
    directed,
    gated,
    over_series,
    plain,
    texts,
)

from timetrial.environments import Framework, Version, locate, shipped_frameworks
from timetrial.errors import Unavailable
from timetrial.launch import Limits, run_launch
from timetrial.records.model import LaunchRecord, Parity

pytestmark = pytest.mark.usefixtures("compiled_once")
CORES = len(os.sched_getaffinity(0))
# A user's limits: a framework may compile for a minute.
_plan = partial(make_plan, measure=replace(SHORT, limits=Limits()))

# Adapters without layers of several inputs, and so without dropout, which reads its mask.
CANNOT_JOIN = ("cntk", "neon", "singa", "torch7")

# What not every framework has: networks of kind_networks.py, and who (up to the version) lacks it.
_OLD = ("cntk", "neon", "singa", "torch7")
LACKING = {
    "NORMALIZED": ("caffe", "keras@2", *_OLD),
    "NORMALIZED_FLAT": ("caffe", "keras@2", *_OLD),
    "RESPONDING": ("keras", *_OLD),
    "BENT": _OLD,
    "CUT": ("caffe", *_OLD),
    "GROUPED": ("keras@2", "pytensor", *_OLD),
    "UNEVEN": ("caffe", *_OLD),
    "DILATED": ("keras@2", "tensorflow@1", *_OLD),
    "DECODED": ("keras@2", "pytensor", *_OLD),
    "DECODED_AND_PADDED": ("caffe", "keras@2", "pytensor", *_OLD),
    "ENLARGED": ("caffe", *_OLD),
}

# Adapters that go along time, but for these modes; those of them whose recurrent layers have one bias or
# none, and those that leave out the steps that do not count.
ALONG_TIME = ("chainer", "jax", "keras@3", "mxnet", "paddle", "pytensor", "pytorch", "tensorflow", "theano")
NOT_ALONG_TIME = ("numba",)
ONE_BIAS = ("keras@3",)
PACKING = ("chainer",)
# Of them, those whose dense layers have a weight of their own.
UNTIED = ("keras",)
# Whose log_softmax, oneDNN's, is off by 2e-6 of a probability (1.6: 1e-7): of two classes that is more than
# the gradient of a last bias, nearly a sum of opposites, may be off by.
INEXACT = ("mxnet@1.9.1",)
# Which of them lack a form of another recurrent layer, and what they say; whose GRU is one operation.
REFUSED = {
    gated(False): (("chainer", "mxnet", "paddle", "pytorch"), "has no gru with reset_after false"),
    plain(2): (ONE_BIAS, "has no rnn with biases 2"),
}
FUSED = ("mxnet", "paddle")

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


def _everything(*, wrong: bool = False) -> list[object]:
    """One parameter per framework, version and mode; one that is not installed is skipped, with the cure.
    Modes whose library is known to compute something else come alone, if `wrong`."""
    found = []
    for framework in shipped_frameworks().values():
        for version in framework.versions:
            lacking = _lacking(framework, version)
            marks = [pytest.mark.skip(reason=lacking)] if lacking else []
            name = f"{framework.name}@{version.version}"
            for mode in version.modes or ("",):
                if (mode in version.wrong) != wrong:
                    continue
                full = [] if mode in QUICK.get(name, ()) else [pytest.mark.full]
                found.append(pytest.param(name, mode, id=f"{name}-{mode}".rstrip("-"), marks=marks + full))
    return found


def _lacking(framework: Framework, version: Version) -> str | None:
    try:
        locate(framework, version.version, None)
    except Unavailable as reason:
        return framework_skip(f"{framework.name}@{version.version}", reason)
    return None


EVERYTHING = pytest.mark.parametrize(("backend", "mode"), _everything())
# Its log_softmax is off by 1e-6: of two classes, whose gradients cancel in the last bias, by more than is let
# pass.
NO_TWO_CLASSES = ("mxnet@1.9.1",)
# The same without those, with one mode of a framework every day and the others in full.
_ONE_MODE_A_DAY = [
    pytest.param(*one.values, id=one.id, marks=[*one.marks, *([pytest.mark.full] if later else [])])
    for one in _everything()
    if one.values[0] not in NO_TWO_CLASSES
    for later in [one.values[1] in QUICK.get(one.values[0], ())[1:]]
]
ONE_MODE_A_DAY = pytest.mark.parametrize(("backend", "mode"), _ONE_MODE_A_DAY)
# Who compiles C++ for a minute for each network along time is asked for fewer of them: for every cell, and
# for both directions, which symbolic_sequences.py has in common for all cells.
COMPILING = ("pytensor", "theano")
SOON_READY = pytest.mark.parametrize(
    ("backend", "mode"), [one for one in _ONE_MODE_A_DAY if not one.values[0].startswith(COMPILING)]
)
KNOWN_WRONG = pytest.mark.parametrize(("backend", "mode"), _everything(wrong=True))


def _goes_along_time(backend: str, mode: str) -> bool:
    return backend.startswith(ALONG_TIME) and mode not in NOT_ALONG_TIME


def _settings(mode: str, **more: str) -> dict[str, str]:
    return {"mode": mode, **more} if mode else more


@EVERYTHING
@pytest.mark.parametrize(
    ("loss", "momentum", "weight_decay"),
    [
        ("softmax_cross_entropy", 0.9, 0.0),
        pytest.param("squared_error", 0.5, 0.01, marks=pytest.mark.full),
    ],
)
def test_every_layer_is_proven(
    tmp_path: Path, backend: str, mode: str, loss: str, momentum: float, weight_decay: float
) -> None:
    network = tmp_path / "all.toml"
    network.write_text(ALL_LAYERS.replace("LOSS", loss))
    plan = _plan(
        tmp_path / "launch",
        backend,
        network=str(network),
        purpose="proof",
        settings=_settings(mode),
        momentum=momentum,
        weight_decay=weight_decay,
    )
    compared = {comparison.tensor for comparison in _proven(run_launch(plan)).comparisons}
    expected = {"gradient conv1.weight", "gradient fc1.bias", "evaluation: output"}
    assert {*expected, "step 1: parameter conv2.bias", "stress: step 1: parameter fc1.bias"} <= compared


@EVERYTHING
@pytest.mark.parametrize(
    ("kind", "text"), [("add", FANNED), pytest.param("dropout", DROPPED, marks=pytest.mark.full)]
)
def test_layers_of_several_inputs_are_proven(
    tmp_path: Path, backend: str, mode: str, kind: str, text: str
) -> None:
    record = _own_network(tmp_path, backend, mode, text)
    if backend.partition("@")[0] in CANNOT_JOIN:
        assert record.outcome == "unavailable", words(record)
        assert f"'{kind}'" in (record.reason or "")
    else:
        _proven(record)


@pytest.mark.parametrize(
    ("backend", "mode"), [one for one in _everything() if one.values[0] in QUICK], ids=str
)
@pytest.mark.parametrize("task", ["train", pytest.param("forward", marks=pytest.mark.full)])
def test_newer_kinds_are_proven_together(tmp_path: Path, backend: str, mode: str, task: str) -> None:
    _proven(_own_network(tmp_path, backend, mode, kind_networks.TOGETHER, task))


@pytest.mark.full
@EVERYTHING
@pytest.mark.parametrize("name", LACKING)
def test_newer_kinds_are_proven_or_refused(tmp_path: Path, backend: str, mode: str, name: str) -> None:
    record = _own_network(tmp_path, backend, mode, getattr(kind_networks, name))
    if backend.startswith(LACKING[name]):
        assert record.outcome == "unavailable", words(record)
        assert "the backend has no " in (record.reason or "")
    else:
        _proven(record)


@ONE_MODE_A_DAY
@pytest.mark.parametrize("biases", [1, *[pytest.param(one, marks=pytest.mark.full) for one in (0, 2)]])
def test_layers_along_time_are_proven(tmp_path: Path, backend: str, mode: str, biases: int) -> None:
    """And which way a recurrent layer goes is in the record. One thread: on a busy machine two of torch's
    wait for each other."""
    data: dict[str, Any] = {"dataset": "synthetic-sentences@20", "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, texts(biases), **data)
    if not _goes_along_time(backend, mode) or (biases == 2 and backend.startswith(ONE_BIAS)):
        assert record.outcome == "unavailable", words(record)
        assert re.search("the backend (has no|takes) ", record.reason or "")
        return
    compared = {comparison.tensor for comparison in _proven(record).comparisons}
    assert {"gradient embed.weight", "gradient one.recurrent_weight", "activation mean"} <= compared
    computed = "the steps that count" if backend.startswith(PACKING) else "all 20 steps of every sample"
    assert record.facts["one forward"].endswith(f", {computed}")


@pytest.mark.full
@EVERYTHING
@pytest.mark.parametrize("text", [gated(), gated(False), plain(1), plain(2)])
def test_other_cells_are_proven_or_refused(tmp_path: Path, backend: str, mode: str, text: str) -> None:
    dataset, own, steps = "synthetic-sentences@20", text, 20
    if backend.startswith(INEXACT):
        dataset, own, steps = "synthetic-series", over_series(text), 24
    data = {"dataset": dataset, "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, own, **data)
    refuses, reason = REFUSED.get(text, ((), ""))
    if not _goes_along_time(backend, mode) or backend.startswith(refuses):
        assert record.outcome == "unavailable", words(record)
        assert not _goes_along_time(backend, mode) or reason in (record.reason or "")
        return
    _proven(record)
    computed = "the steps that count" if backend.startswith(PACKING) else f"all {steps} steps of every sample"
    assert record.facts["one forward"].endswith(f", {computed}")
    is_slow = backend.startswith("keras@3") and mode == "torch" and text == gated()
    assert ("one faster" in record.facts) == is_slow


@ONE_MODE_A_DAY
def test_both_directions_are_proven(tmp_path: Path, backend: str, mode: str) -> None:
    _directions_are_proven(tmp_path, backend, mode, directed(texts()))


@pytest.mark.full
@SOON_READY
@pytest.mark.parametrize(
    "text",
    [
        directed(texts(), "reverse"),
        directed(gated()),
        directed(gated(), "reverse"),
        directed(plain()),
        directed(plain(0), "reverse"),
    ],
)
def test_directions_are_proven(tmp_path: Path, backend: str, mode: str, text: str) -> None:
    _directions_are_proven(tmp_path, backend, mode, text)


def _directions_are_proven(tmp_path: Path, backend: str, mode: str, text: str) -> None:
    data = {"dataset": "synthetic-sentences@20", "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, text, **data)
    if not _goes_along_time(backend, mode):
        assert record.outcome == "unavailable", words(record)
        return
    compared = {comparison.tensor for comparison in _proven(record).comparisons}
    assert ("gradient one.reverse.weight" in compared) == ("bidirectional" in text)


@pytest.mark.full
@SOON_READY
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_directions_without_lengths_are_proven(
    tmp_path: Path, backend: str, mode: str, direction: str
) -> None:
    data = {"dataset": "synthetic-series", "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, directed(FULL, direction), **data)
    if _goes_along_time(backend, mode):
        _proven(record)
    else:
        assert record.outcome == "unavailable", words(record)


@pytest.mark.full
@SOON_READY
def test_each_layer_says_its_own_way(tmp_path: Path, backend: str, mode: str) -> None:
    data = {"dataset": "synthetic-sentences@20", "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, beside_an_lstm(), **data)
    if not _goes_along_time(backend, mode):
        assert record.outcome == "unavailable", words(record)
        return
    _proven(record)
    assert ("fused" in record.facts["two forward"]) == backend.startswith(FUSED)


@pytest.mark.full
@EVERYTHING
@pytest.mark.parametrize("text", [SERIES, FULL])
def test_series_are_proven(tmp_path: Path, backend: str, mode: str, text: str) -> None:
    data = {"dataset": "synthetic-series", "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, text, **data)
    if _goes_along_time(backend, mode):
        _proven(record)
    else:
        assert record.outcome == "unavailable", words(record)


@pytest.mark.full
@EVERYTHING
@pytest.mark.parametrize(
    ("text", "lacking"),
    [(LANGUAGE, ()), (TIED, UNTIED), (CARRIED, ()), (TRANSLATION, ())],
    ids=["own", "tied", "carried", "translation"],
)
def test_a_loss_for_each_step_is_proven(
    tmp_path: Path, backend: str, mode: str, text: str, lacking: tuple[str, ...]
) -> None:
    dataset = "synthetic-pairs@6" if text == TRANSLATION else "synthetic-language@6"
    data = {"dataset": dataset, "settings": _settings(mode, threads="1")}
    record = _own_network(tmp_path, backend, mode, text, **data)
    if _goes_along_time(backend, mode) and not backend.startswith(lacking):
        _proven(record)
    else:
        assert record.outcome == "unavailable", words(record)
        assert re.search("the backend (has no|takes) ", record.reason or "")


@pytest.mark.full
@EVERYTHING
def test_maps_are_read_row_by_row(tmp_path: Path, backend: str, mode: str) -> None:
    record = _own_network(
        tmp_path, backend, mode, ROWS, dataset="digits28", settings=_settings(mode, threads="1")
    )
    if _goes_along_time(backend, mode):
        _proven(record)
    else:
        assert record.outcome == "unavailable", words(record)
        assert re.search("the backend (has no|takes) ", record.reason or "")


@pytest.mark.full
@EVERYTHING
@pytest.mark.parametrize(
    ("purpose", "task"), [("proof", "gradient"), ("proof", "forward"), ("speed", "train")]
)
def test_carried_states_elsewhere(tmp_path: Path, backend: str, mode: str, purpose: str, task: str) -> None:
    data = {"dataset": "synthetic-language@6", "settings": _settings(mode, threads="1"), "purpose": purpose}
    record = _own_network(tmp_path, backend, mode, CARRIED, task, **data)
    if _goes_along_time(backend, mode):
        judged = record.end if purpose == "speed" else record.parity
        assert judged is not None, words(record)
        assert judged.status == "passed", judged
    else:
        assert record.outcome == "unavailable", words(record)


@pytest.mark.full
@EVERYTHING
@pytest.mark.parametrize("task", ["gradient", "forward"])
def test_states_of_layers_in_other_tasks(tmp_path: Path, backend: str, mode: str, task: str) -> None:
    record = _own_network(tmp_path, backend, mode, kind_networks.NORMALIZED, task)
    if backend.startswith(LACKING["NORMALIZED"]):
        assert record.outcome == "unavailable", words(record)
    else:
        _proven(record)


@EVERYTHING
@pytest.mark.parametrize("task", ["gradient", pytest.param("forward", marks=pytest.mark.full)])
def test_tasks_without_update(tmp_path: Path, backend: str, mode: str, task: str) -> None:
    network = small_network(tmp_path)
    plan = _plan(
        tmp_path / "launch", backend, network=network, purpose="proof", task=task, settings=_settings(mode)
    )
    _proven(run_launch(plan))


@EVERYTHING
@pytest.mark.parametrize(
    "threads",
    [pytest.param(1, marks=[pytest.mark.full] if CORES > 1 else []), *range(2, min(CORES, 2) + 1)],
)
def test_threads_are_applied_and_read_back(tmp_path: Path, backend: str, mode: str, threads: int) -> None:
    settings = _settings(mode, threads=str(threads))
    # Plain descent, which the other tests do not have.
    plan = partial(_plan, backend=backend, network="lenet5", settings=settings, momentum=0.0)
    parity = _proven(run_launch(plan(tmp_path / "proof", purpose="proof")))
    timed = run_launch(plan(tmp_path / "timed", proof=parity))
    assert timed.outcome == "ok", words(timed)
    found = next(setting for setting in timed.settings if setting.name == "threads")
    assert found.status in ("applied", "adjusted"), found
    assert {"first", "steady"} <= {segment.kind for segment in timed.segments}


@EVERYTHING
def test_a_timed_forward_pass(tmp_path: Path, backend: str, mode: str) -> None:
    network = small_network(tmp_path)
    record = run_launch(_plan(tmp_path, backend, network=network, task="forward", settings=_settings(mode)))
    assert record.outcome == "ok", words(record)


@pytest.mark.effect("mode")
@KNOWN_WRONG
def test_a_defect_of_the_library_is_caught(tmp_path: Path, backend: str, mode: str) -> None:
    plan = partial(make_plan, backend=backend, network="lenet5", purpose="proof", settings=_settings(mode))
    record = run_launch(plan(tmp_path / "train"))
    assert record.outcome == "wrong", words(record)
    assert record.parity is not None
    assert record.parity.status == "failed"
    # It is no misuse by the adapter, which must still agree where the defect plays no part.
    _proven(run_launch(plan(tmp_path / "forward", task="forward")))


def _own_network(
    folder: Path, backend: str, mode: str, text: str, task: str = "train", **more: Any
) -> LaunchRecord:
    network = folder / "own.toml"
    network.write_text(text)
    given = {"network": str(network), "purpose": "proof", "settings": _settings(mode), "task": task, **more}
    return run_launch(_plan(folder / "launch", backend, **given))


def _proven(record: LaunchRecord) -> Parity:
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    return record.parity
