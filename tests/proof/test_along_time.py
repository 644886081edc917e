"""A network along time whose samples cancel: what last places make of the judge's own gradients is no defect,
and more than that is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.rounding import Doubt, doubt_of_batch, may_magnify, shifted
from timetrial.agreement.sizes import norm
from timetrial.core import Input, Network
from timetrial.proof.expected import Expected
from timetrial.proof.judge import SMALL, NativeJudge
from timetrial.proof.parity import compare
from timetrial.questions.observed import Batches, Look, Observation, Tensors
from timetrial.records.model import Parity

N, STEPS, FEATURES = 8, 40, 3
INPUTS = (Input("series", (STEPS, FEATURES)), Input("labels", (), "i64", "target"))
ALONG_TIME: list[dict[str, Any]] = [
    {"name": "layer", "kind": "lstm", "inputs": ["series"], "attributes": {"units": 4}},
    {"name": "fc", "kind": "dense", "attributes": {"units": 2}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
]
OTHER: list[dict[str, Any]] = [
    {"name": "flat", "kind": "flatten", "inputs": ["series"]},
    {"name": "layer", "kind": "dense", "attributes": {"units": 4}},
    {"name": "curve", "kind": "tanh"},
    *ALONG_TIME[1:],
]


class Stage:
    """Half of the samples are nearly those of the other half, with the other label: little is left."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        rng = np.random.default_rng(2)
        network = Network(nodes, N, INPUTS)
        self.parameters: Tensors = {
            one["name"]: rng.normal(0, 0.3, one["shape"]).astype(np.float32) for one in network.parameters
        }
        half = rng.normal(0, 1, (N // 2, STEPS, FEATURES))
        series = np.concatenate([half, half * (1 + 1e-3)]).astype(np.float32)
        self.batch = {"series": series, "labels": np.repeat([0, 1], N // 2)}
        self.parameters["fc.weight"][1] = 0.97 * self.parameters["fc.weight"][0]  # it hardly tells them apart
        self.parameters["fc.bias"][:] = 0
        self.judge = NativeJudge(SMALL, network)
        self.answer = self.judge.gradient(self.parameters, self.batch)
        self.gradient = {name: self.answer.gradient[name] for name in self.parameters}

    def doubt(self) -> Doubt:
        return doubt_of_batch(self.judge.witness(images=N), self.parameters, {}, self.batch, 1)

    def moved(self, share: float) -> Tensors:
        """The gradient of whoever has other last places."""
        witness = self.judge.witness(images=N)
        witness.load(next(shifted(self.parameters, share)))
        return dict(witness.gradient(self.batch, {}).gradient)

    def judged(self, folder: Path, contender: Tensors) -> Parity:
        for name, array in {**self.batch, "order": np.arange(N)[None]}.items():
            np.save(folder / f"{name}.npy", array)
        tensors = {name: str(folder / f"{name}.npy") for name in self.batch}
        batches = Batches({"proof": {"tensors": tensors, "order": str(folder / "order.npy")}})
        expected = Expected(self.parameters, {}, {"name": "sgd", "learning_rate": 0.1}, batches)
        look = Look(self.parameters, {}, {})
        seen = Observation("step", "proof", 0, look, loss=self.answer.loss, gradient=contender)
        return compare([seen], self.judge, expected)


def off(stage: Stage, contender: Tensors) -> float:
    return max(norm(contender[name] - one) / norm(one) for name, one in stage.gradient.items())


def test_last_places_are_no_defect_along_time(tmp_path: Path) -> None:
    stage = Stage(ALONG_TIME)
    contender = stage.moved(0.5)
    assert off(stage, contender) > 3e-5, "more than is allowed where nothing magnifies"
    parity = stage.judged(tmp_path, contender)
    assert parity.status == "passed", parity.reason
    assert parity.turned == ["step: within what rounding makes of the judge's own numbers"]


@pytest.mark.attempt
@pytest.mark.parametrize("name", ["layer.recurrent_weight", "layer.weight", "fc.weight"])
@pytest.mark.parametrize(("share", "status"), [(0.9, "passed"), (1.1, "failed")])
def test_what_is_farther_off_is_one(tmp_path: Path, name: str, share: float, status: str) -> None:
    stage = Stage(ALONG_TIME)
    size = norm(stage.gradient[name])
    wrong = np.ones(stage.gradient[name].shape)
    allowed = stage.doubt().allowed_of(name, size, 2e-5)
    contender = {**stage.gradient, name: stage.gradient[name] + share * allowed * wrong / norm(wrong)}
    parity = stage.judged(tmp_path, contender)
    assert parity.status == status, parity.reason
    assert parity.tensor == f"step: gradient {name}"


@pytest.mark.attempt
def test_elsewhere_they_are(tmp_path: Path) -> None:
    """Of other networks every gradient is measured by itself, however little is left of it."""
    stage, name = Stage(OTHER), "layer.weight"
    wrong = np.ones(stage.gradient[name].shape)
    doubted = stage.doubt().allowed("gradient", name)
    assert doubted > 5e-5 * norm(stage.gradient[name])
    contender = {**stage.gradient, name: stage.gradient[name] + 0.9 * doubted * wrong / norm(wrong)}
    parity = stage.judged(tmp_path, contender)
    assert (parity.status, parity.tensor) == ("failed", f"step: gradient {name}")


def test_who_magnifies() -> None:
    assert may_magnify({"lstm.reverse.recurrent_weight": 1}, {})
    assert may_magnify({"conv.weight": 1}, {"bn.running_var": 1})
    assert not may_magnify({"conv.weight": 1}, {})


def test_what_a_doubt_allows() -> None:
    doubt = Doubt(of={("gradient", "w"): 3.0})
    assert doubt.allowed_of("w", 10.0, 0.5) == 5 + 6
    assert doubt.allowed_of("other", 10.0, 0.5) == 5
    assert Doubt(least=0.9, of=doubt.of).allowed_of("other", 10.0, 0.5) == 9
