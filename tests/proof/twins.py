"""Contenders without a process: the NumPy framework `planted`, driven by the protocol, and judged."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from launching import workload
from numpy.typing import NDArray

from timetrial.launch.divergence import Divergence, check_finite
from timetrial.proof.expected import expected_of
from timetrial.proof.judge import judge_of, recipe_part
from timetrial.proof.parity import compare, merged
from timetrial.proof.parts import part_of, samples
from timetrial.proof_batches.few import of_few_images
from timetrial.proof_batches.stress import stressed, with_recipe
from timetrial.questions.observed import Batches, Tensors
from timetrial.questions.sequence import Questions
from timetrial.records.model import Parity
from timetrial.workloads import Prepared, prepare

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted" / "adapter.py"

CIFAR_NETWORK = """
[[nodes]]
name = "conv1"
kind = "conv2d"
attributes = { channels = 6, kernel = 3, padding = "same" }
[[nodes]]
name = "relu1"
kind = "relu"
[[nodes]]
name = "pool1"
kind = "max_pool2d"
attributes = { kernel = 2 }
[[nodes]]
name = "conv2"
kind = "conv2d"
attributes = { channels = 8, kernel = 3, stride = 2 }
[[nodes]]
name = "relu2"
kind = "relu"
[[nodes]]
name = "flat"
kind = "flatten"
[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = 24 }
[[nodes]]
name = "relu3"
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


def planted_adapter(**settings: str) -> Any:
    """An instance of the NumPy framework's adapter."""
    spec = importlib.util.spec_from_file_location("planted_twin", PLANTED)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    adapter = module.Adapter()
    adapter.load({f"planted.{name}": value for name, value in settings.items()})
    return adapter


class Twin:
    """A contact whose contender lives here."""

    def __init__(self, prepared: Prepared, task: str, **settings: str):
        self._task = task
        self._batches = Batches(prepared.job["streams"])
        nodes = [SimpleNamespace(**node) for node in prepared.job["network"]["nodes"]]
        files = {
            role: {
                one["name"]: one["file"] for node in nodes for one in node.parameters if one["role"] == role
            }
            for role in ("parameter", "state")
        }
        self._batch = {
            node.name: np.empty(node.shape, np.int64 if node.dtype == "i64" else np.float32)
            for node in nodes
            if node.kind == "input"
        }
        job = SimpleNamespace(
            nodes=[node for node in nodes if node.kind != "input"],
            loss=prepared.job["network"]["loss"],
            output=prepared.job["network"]["output"],
            optimizer=prepared.job["optimizer"],
            rate=lambda _step: prepared.job["optimizer"]["learning_rate"],  # twins have no schedule
            parameters={name: np.load(file) for name, file in files["parameter"].items()},
            states={name: np.load(file) for name, file in files["state"].items()},
            streams=prepared.job["streams"],
        )
        self._adapter = planted_adapter(**settings)
        self._stream, self._row = "train", 0
        self._fill()
        self._adapter.build(job, self._batch)

    def stream(self, name: str) -> None:
        self._stream, self._row = name, 0

    def reset(self) -> None:
        self._adapter.reset()
        self._row = 0

    def run(self, steps: int) -> list[float]:
        verb = {"train": self._adapter.step, "gradient": self._adapter.gradient}.get(
            self._task, self._adapter.forward
        )
        losses = []
        for _ in range(steps):
            self._fill()
            self._row += 1
            losses.append(verb())
        return losses

    def gradient(self) -> float:
        self._fill()
        return float(self._adapter.gradient())

    def show(self, places: NDArray[np.int64] | None) -> Tensors:
        self._fill()
        shown = self.dump("activation")
        return shown if places is None else {name: values[places] for name, values in shown.items()}

    def dump(self, role: str) -> Tensors:
        return {name: np.array(values) for name, values in self._adapter.tensors(role).items()}

    def outputs(self) -> NDArray[Any]:
        row, self._row = self._row, 0
        self._fill()
        self._row = row
        return np.array(self._adapter.evaluate())

    def predicted(self) -> NDArray[Any]:
        return np.array(self._adapter.predicted)

    def _fill(self) -> None:
        for name, values in self._batches.batch(self._stream, self._row).items():
            self._batch[name][:] = values


@dataclasses.dataclass
class Bench:
    """A workload, ready for many twins."""

    prepared: Prepared
    stress: Prepared
    task: str = "train"

    @classmethod
    def of(cls, network: str, dataset: str, task: str = "train", seed: int = 1, **recipe: Any) -> Bench:
        work = workload(network, dataset, **recipe)
        prepared = prepare(work, seed=seed, epochs=1)
        assert prepared.network is not None
        part = recipe_part(prepared.network)
        stress = stressed(work, prepared, seed)
        recipe = of_few_images(with_recipe(stress, judge_of(stress, part)), part)
        return cls(of_few_images(prepared, part_of(prepared.network)), recipe, task)

    def proof(self, defect: str = "none", **settings: str) -> Parity:
        """Of the NumPy framework, as a proof launch."""
        return self.proof_of(lambda prepared: Twin(prepared, self.task, defect=defect, **settings))

    def end(self, defect: str = "none", steps: int = 60, **settings: str) -> Parity:
        """Of the NumPy framework, as a timed launch of so many steps."""
        return self.end_of(lambda prepared: Twin(prepared, self.task, defect=defect, **settings), steps)

    @np.errstate(all="ignore")  # a defect may well diverge
    def proof_of(self, make: Callable[[Prepared], Any], *, is_large: bool = False) -> Parity:
        """Of any contact: what a proof launch and its stress launch make of it."""
        parities = []
        for prepared, part, prefix in ((self.prepared, part_of, ""), (self.stress, recipe_part, "stress: ")):
            assert prepared.network is not None
            images = part(prepared.network)
            asked = questions(self.task, make(prepared), prepared, images, is_large=is_large)
            proof = asked.proof(own_data=not prefix)
            parities.append(
                compare(
                    proof.observations,
                    judge_of(prepared, images),
                    expected_of(prepared),
                    plain=proof.plain,
                    losses=proof.losses,
                    prefix=prefix,
                    failed=Divergence(proof.observations, proof.losses[:1]).check,
                )
            )
        return merged(*parities)

    @np.errstate(all="ignore")
    def end_of(self, make: Callable[[Prepared], Any], steps: int) -> Parity:
        """Of any contact: what the end of a timed launch makes of it."""
        contact = make(self.prepared)
        contact.run(steps)
        assert self.prepared.network is not None
        asked = questions(self.task, contact, self.prepared, part_of(self.prepared.network))
        end = asked.end(steps)
        check_finite(end)
        return compare(end, judge_of(self.prepared), expected_of(self.prepared))


def questions(task: str, contact: Any, prepared: Prepared, part: int, *, is_large: bool = False) -> Questions:
    """For a contact, of batches with so many different images."""
    batches = Batches(prepared.job["streams"])

    def places(stream: str, row: int) -> NDArray[np.int64] | None:
        return samples(batches.batch(stream, row), part)

    return Questions(task, contact, places, is_large=is_large)
