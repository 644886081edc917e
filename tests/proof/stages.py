"""A network with its judge, values and a batch, and contenders that are as they should be but for one
thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from timetrial.core import Network, images_and_labels
from timetrial.proof.expected import Expected
from timetrial.proof.judge import SMALL, Answer, JudgingBackend, NativeJudge
from timetrial.proof.parity import compare
from timetrial.questions.observed import Batches, Look, Observation, Tensors
from timetrial.records.model import Parity

SHAPE = (1, 8, 8)
IMAGES = 6
PLAIN: list[dict[str, Any]] = [
    {"name": "conv1", "kind": "conv2d", "inputs": ["images"], "attributes": {"channels": 4, "kernel": 3}},
    {"name": "relu1", "kind": "relu"},
    {"name": "pool", "kind": "max_pool2d", "attributes": {"kernel": 2}},
    {"name": "flat", "kind": "flatten"},
    {"name": "fc1", "kind": "dense", "attributes": {"units": 12}},
    {"name": "relu2", "kind": "relu"},
    {"name": "fc2", "kind": "dense", "attributes": {"units": 3}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc2", "labels"]},
]
NORMALIZED: list[dict[str, Any]] = [
    {"name": "conv1", "kind": "conv2d", "inputs": ["images"], "attributes": {"channels": 4, "kernel": 3}},
    {"name": "norm", "kind": "batch_norm"},
    {"name": "relu1", "kind": "relu"},
    {"name": "conv2", "kind": "conv2d", "attributes": {"channels": 4, "kernel": 3, "padding": "same"}},
    {"name": "sum", "kind": "add", "inputs": ["conv2", "relu1"]},
    {"name": "relu2", "kind": "relu6"},
    {"name": "mean", "kind": "global_avg_pool2d"},
    {"name": "fc", "kind": "dense", "attributes": {"units": 3}},
    {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
]


class Stage:
    """`parameters`, `batch`: values that it is judged at. `shown`: by an honest contender, in f32."""

    def __init__(
        self,
        folder: Path,
        nodes: list[dict[str, Any]],
        backend: JudgingBackend = SMALL,
        spread: float = 0.4,
        seed: int = 3,
    ):
        rng = np.random.default_rng(seed)
        self.network = Network(nodes, IMAGES, images_and_labels(SHAPE))
        self.parameters: Tensors = {
            one["name"]: rng.normal(0, spread, one["shape"]).astype(np.float32)
            for one in self.network.parameters
        }
        self.states: Tensors = {
            one["name"]: np.full(one["shape"], float("var" in one["name"]), np.float32)
            for one in self.network.states
        }
        images = rng.uniform(-1, 1, (IMAGES, *SHAPE)).astype(np.float32)
        self.batch: Tensors = {"images": images, "labels": rng.integers(0, 3, IMAGES)}
        self.judge = NativeJudge(backend, self.network, threads=None if backend is SMALL else 1)
        for name, array in {**self.batch, "order": np.arange(IMAGES)[None]}.items():
            np.save(folder / f"{name}.npy", array)
        tensors = {name: str(folder / f"{name}.npy") for name in self.batch}
        files = {"proof": {"tensors": tensors, "order": str(folder / "order.npy")}}
        job = self.network.to_job()["nodes"]
        self.expected = Expected(
            initial=self.parameters,
            layers=[node for node in job if node["kind"] != "input" and node["shape"]],
            optimizer={"name": "sgd", "learning_rate": 0.1},
            batches=Batches(files),
            states=self.states,
            couples_batch=self.network.couples_batch,
        )
        self.shown = self.honest()

    @property
    def values(self) -> Tensors:
        return {**self.parameters, **self.states}

    def honest(self, changed: Tensors | None = None) -> Tensors:
        """Every layer rounded to f32 from the rounded layers in front of it; `changed`: other values of
        some."""
        shown: Tensors = {}
        for layer in self.expected.layers:
            made = self.judge.gradient(self.values, self.batch, shown).activation[layer["name"]]
            shown[layer["name"]] = (changed or {}).get(layer["name"], made.astype(np.float32))
        return shown

    def answer(self, shown: Tensors | None = None) -> Answer:
        """The judge's, at what is shown."""
        return self.judge.gradient(self.values, self.batch, self.shown if shown is None else shown)

    def judged(self, gradient: Tensors, shown: Tensors | None = None, at: Tensors | None = None) -> Parity:
        """Of a contender with these gradients, which shows this; the rest of it is right `at` that."""
        shown = self.shown if shown is None else shown
        answer = self.answer(shown if at is None else at)
        seen = Observation(
            "", "proof", 0, Look(self.parameters, layer_state=self.states),
            loss=answer.loss, shown=shown, gradient=gradient, moved=answer.state,
        )  # fmt: skip
        return compare([seen], self.judge, self.expected)
