"""Honest contenders that earlier gates refused: what rounding makes of them is no defect."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_twin import NativeTwin
from own_networks import NORMALIZED
from sequence_networks import SERIES
from twins import Bench

from timetrial.processes.outcome import LaunchError
from timetrial.proof import parts
from timetrial.proof.judge import NativeJudge
from timetrial.records.model import Parity
from timetrial.workloads import Prepared

BACKENDS = ("eigen", "onednn")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))


def refused(bench: Bench, backend: str, steps: int = 20) -> list[str]:
    """Why a native contender is, by its proof and behind a timed part."""

    def twin(prepared: Prepared) -> NativeTwin:
        return NativeTwin(prepared, bench.task, backend)

    found: list[Parity] = [bench.proof_of(twin), bench.end_of(twin, steps)]
    return [f"{one.reason} {one.turned}" for one in found if one.status != "passed"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("dataset", "batch", "rate"),
    [("digits28", 16, 1e-7), ("digits28", 16, 3e-6), ("digits28", 16, 0.1), ("synthetic", 64, 0.3)],
)
def test_any_rate(backend: str, dataset: str, batch: int, rate: float) -> None:
    """At small ones updates lie below the last place of a weight; at large ones the loss rises."""
    pytest.importorskip("sklearn")
    bench = Bench.of("lenet5", dataset, batch_size=batch, learning_rate=rate, momentum=0.0)
    assert refused(bench, backend) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_training_that_diverges_is_not_called_wrong(backend: str) -> None:
    pytest.importorskip("sklearn")
    bench = Bench.of("lenet5", "digits28", batch_size=16, learning_rate=0.3, momentum=0.0)
    with pytest.raises(LaunchError, match="training has diverged") as error:
        refused(bench, backend)
    assert error.value.outcome == "nan"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plain_recurrence_over_many_steps(tmp_path: Path, backend: str, rate: float, seed: int) -> None:
    text = SERIES.replace('kind = "lstm"', 'kind = "rnn"').replace("units = 8", "units = 33")
    path = tmp_path / "rnn.toml"
    path.write_text(text.partition("dataset =")[0])
    bench = Bench.of(str(path), "synthetic-series", seed=seed, batch_size=5, learning_rate=rate, momentum=0.0)
    assert refused(bench, backend) == []


def changed(prepared: Prepared, folder: Path, even: bool, scale: int = 1) -> Prepared:
    """With images so many times as bright; `even`: one value all over, by their class."""
    job = copy.deepcopy(prepared.job)
    for name, stream in job["streams"].items():
        if "images" not in stream["tensors"]:
            continue
        images, labels = (np.load(stream["tensors"][one]) for one in ("images", "labels"))
        if even:
            images = np.broadcast_to((labels.reshape(-1, 1, 1, 1) + 1) / 11, images.shape)
        file = folder / f"{name}-{len(prepared.job)}-{images.shape[0]}-images.npy"
        np.save(file, (scale * images).astype(np.float32))
        stream["tensors"]["images"] = str(file)
    return dataclasses.replace(prepared, job=job)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("batch", "even"), [(2, False), (3, False), (16, True)])
def test_normalizations_of_next_to_nothing(tmp_path: Path, backend: str, batch: int, even: bool) -> None:
    """Over batches of two and three, and where nothing varies within a class."""
    path = tmp_path / "normalized.toml"
    path.write_text(NORMALIZED)
    bench = Bench.of(str(path), "synthetic", batch_size=batch, learning_rate=0.05)
    if even:
        bench = Bench(*(changed(one, tmp_path, even) for one in (bench.prepared, bench.stress)), bench.task)
    assert refused(bench, backend) == []


@pytest.mark.attempt
@pytest.mark.parametrize("defect", ["frozen:conv1.weight", "frozen:fc1.weight", "gradient_off:conv2.weight"])
@pytest.mark.parametrize(("batch", "even", "scale"), [(16, True, 1), (2, False, 255)])
def test_next_to_nothing_excuses_no_defect(
    tmp_path: Path, defect: str, batch: int, even: bool, scale: int
) -> None:
    """Nor does it where images are as they come, from 0 to 255: whose gradient rounding may have left nothing
    of is not called proven."""
    path = tmp_path / "normalized.toml"
    path.write_text(NORMALIZED)
    bench = Bench.of(str(path), "synthetic", batch_size=batch, learning_rate=0.05)
    prepared = [changed(one, tmp_path, even, scale) for one in (bench.prepared, bench.stress)]
    parity = Bench(*prepared, bench.task).proof(defect)
    assert parity.status != "passed", (parity.reason, parity.turned)


def test_a_large_network_asks_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a network whose images depend on each other and of which not all are judged: a proof and its
    recipe."""
    path = tmp_path / "normalized.toml"
    path.write_text(NORMALIZED)
    monkeypatch.setattr(parts, "COUPLED_LIMIT", 1)
    bench = Bench.of(str(path), "synthetic", batch_size=16, learning_rate=0.05)
    asked: list[Any] = []
    ask = NativeJudge.gradient
    monkeypatch.setattr(NativeJudge, "gradient", lambda *given: asked.append(1) or ask(*given))
    parity = bench.proof_of(lambda prepared: NativeTwin(prepared, "train", "onednn"), is_large=True)
    assert parity.status == "passed", parity.reason
    assert len(asked) <= 6
