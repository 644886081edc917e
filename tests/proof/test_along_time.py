"""A network along time whose samples cancel: what last places make of the judge's own gradients is no defect,
and more than that is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timetrial.agreement.rounding import FINER, PLACES, largest, of_disturbances, of_shifts
from timetrial.agreement.sizes import norm
from timetrial.core import Input, Network
from timetrial.proof.court import WORDS
from timetrial.proof.expected import Expected
from timetrial.proof.judge import SMALL, Answer, NativeJudge
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

    def doubted(self, name: str) -> float:
        """By how much a gradient may be off besides."""

        def disturbed(draw: int) -> Answer:
            return self.judge.sized(N, rounding=draw).gradient(self.parameters, self.batch)

        shifted = of_shifts(self.answer, self.parameters, lambda at: self.judge.gradient(at, self.batch))
        return largest(shifted, of_disturbances(self.answer, disturbed, 1))["gradient", name]

    def moved(self, share: float) -> Tensors:
        """The gradient of whoever has other last places."""
        rng = np.random.default_rng(0)
        other = {
            name: one * (1 + share * PLACES * rng.uniform(-1, 1, one.shape))
            for name, one in self.parameters.items()
        }
        return dict(self.judge.gradient(other, self.batch).gradient)

    def judged(self, folder: Path, contender: Tensors) -> Parity:
        for name, array in {**self.batch, "order": np.arange(N)[None]}.items():
            np.save(folder / f"{name}.npy", array)
        tensors = {name: str(folder / f"{name}.npy") for name in self.batch}
        batches = Batches({"proof": {"tensors": tensors, "order": str(folder / "order.npy")}})
        expected = Expected(self.parameters, (), {"name": "sgd", "learning_rate": 0.1}, batches)
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
    assert (parity.status, parity.turned) == ("passed", [f"step: {WORDS}"]), parity.reason


@pytest.mark.attempt
@pytest.mark.parametrize("name", ["layer.recurrent_weight", "layer.weight", "fc.weight"])
@pytest.mark.parametrize(("share", "status"), [(0.9, "passed"), (1.1, "failed")])
def test_what_is_farther_off_is_one(tmp_path: Path, name: str, share: float, status: str) -> None:
    stage = Stage(ALONG_TIME)
    wrong = np.ones(stage.gradient[name].shape)
    allowed = 2e-5 * norm(stage.gradient[name]) + stage.doubted(name)
    contender = {**stage.gradient, name: stage.gradient[name] + share * allowed * wrong / norm(wrong)}
    parity = stage.judged(tmp_path, contender)
    assert parity.status == status, parity.reason
    assert parity.tensor == f"step: gradient {name}"


@pytest.mark.attempt
def test_where_rounding_makes_everything_nothing_is_proven(tmp_path: Path) -> None:
    rnn = {"name": "layer", "kind": "rnn", "inputs": ["series"], "attributes": {"units": 33}}
    stage, name = Stage([rnn, *ALONG_TIME[1:]]), "layer.recurrent_weight"
    stage.parameters[name][:] = np.random.default_rng(1).normal(0, 0.7, (33, 33))
    stage.answer = stage.judge.gradient(stage.parameters, stage.batch)
    stage.gradient = {one: stage.answer.gradient[one] for one in stage.parameters}
    wrong = {**stage.gradient, name: np.zeros((33, 33))}
    assert stage.judged(tmp_path, wrong).status != "passed"


@pytest.mark.attempt
def test_elsewhere_they_are(tmp_path: Path) -> None:
    """Of other networks every gradient is measured by itself, however little is left of it."""
    stage, name = Stage(OTHER), "layer.weight"
    wrong = np.ones(stage.gradient[name].shape)
    doubted = stage.doubted(name)
    assert doubted > 5e-5 * norm(stage.gradient[name])
    contender = {**stage.gradient, name: stage.gradient[name] + 0.9 * doubted * wrong / norm(wrong)}
    parity = stage.judged(tmp_path, contender)
    assert (parity.status, parity.tensor) == ("failed", f"step: gradient {name}")


def test_a_doubt_is_as_much_as_last_places_make() -> None:
    """Of what is proportional to a parameter: four times its last places, hardly more, whatever they are."""

    def answer(at: Tensors) -> Answer:
        return Answer(float(at["w"].sum()), {"w": at["w"] * 3})

    start = {"w": np.ones(4000)}
    same = answer(start)
    known = of_shifts(same, start, answer)
    typical = 4 * PLACES * np.sqrt(4000 / 3)
    assert known["gradient", "w"] == pytest.approx(3 * typical, rel=0.05)
    assert known["loss", ""] < 3 * typical


def test_of_disturbed_gradients_the_one_that_is_farthest_off_counts_four_times() -> None:
    same, off = np.zeros(4000), {2: 1.0, 3: -3.0}
    known = of_disturbances(
        Answer(2.0, {"w": same}),
        lambda draw: Answer(2.0, {"w": same + np.eye(1, 4000)[0] * off.get(draw, 0)}),
        2,
    )
    assert known == {("gradient", "w"): 12.0, ("loss", ""): 0.0}
    assert largest(known, {("gradient", "w"): 13.0}) == {("gradient", "w"): 13.0, ("loss", ""): 0.0}
    assert FINER * PLACES < 1e-10
