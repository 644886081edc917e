"""The proof sequence: what a contender and the judge both compute, and the tensors they leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.launch.decisions import Stage
from timetrial.launch.outcome import LaunchError
from timetrial.launch.segments import SampleFiles, SegmentRunner

SEQUENCE = 2  # raise it when the sequence changes: cached answers of the judge are keyed by it
PROOF_STEPS = 5
FIRST_CALLS = ("gradient", "outputs")  # the first of these is the first that computes: it compiles

Tensors = dict[str, NDArray[Any]]
Ask = Callable[[str], dict[str, Any]]  # sends a command, waits, gives its answer


@dataclass
class Proof:
    """What one side computed. A group is empty where the task or the backend has nothing of the kind.

    `activation`, `gradient`: of one step on the proof batch, by node and by parameter; `other_gradient`: of
    one on another random batch, with the same weights.
    `parameter`: after five ordinary steps on the proof batch; `train_parameter`: on the workload's own.
    """

    loss: float | None = None
    activation: Tensors = field(default_factory=dict)
    gradient: Tensors = field(default_factory=dict)
    other_gradient: Tensors = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    parameter: Tensors = field(default_factory=dict)
    output: NDArray[Any] | None = None
    train_losses: list[float] = field(default_factory=list)
    train_parameter: Tensors = field(default_factory=dict)
    # Of the contender only: the five steps once more, one by one, with the gradient before each.
    step_gradients: list[Tensors] = field(default_factory=list)
    stepwise_parameter: Tensors = field(default_factory=dict)
    # Whether five steps, taken twice from the same state, gave the same bits; None where nobody looked.
    deterministic: bool | None = None

    def to_arrays(self) -> Tensors:
        """For the cache: every tensor under one name."""
        arrays: Tensors = {
            "losses": np.array(self.losses, np.float64),
            "train_losses": np.array(self.train_losses, np.float64),
        }
        if self.loss is not None:
            arrays["loss"] = np.array([self.loss], np.float64)
        if self.output is not None:
            arrays["output"] = self.output
        for group in _GROUPS:
            for name, tensor in getattr(self, group).items():
                arrays[f"{group}={name}"] = tensor
        return arrays

    @classmethod
    def from_folder(cls, folder: Path) -> Proof:
        """Reads what to_arrays() named, as files."""
        arrays = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}
        proof = cls(
            loss=float(arrays["loss"][0]) if "loss" in arrays else None,
            losses=[float(loss) for loss in arrays["losses"]],
            output=arrays.get("output"),
            train_losses=[float(loss) for loss in arrays["train_losses"]],
        )
        for key, array in arrays.items():
            group, found, name = key.partition("=")
            if found:
                getattr(proof, group)[name] = array
        return proof


_GROUPS = ("activation", "gradient", "other_gradient", "parameter", "train_parameter")


def run_proof(
    task: str, ask: Ask, runner: SegmentRunner, files: SampleFiles, folder: Path, *, stepwise: bool
) -> Proof:
    """Runs the sequence of `task` and reads the tensors; the folder of dumps is removed afterwards."""
    proof = Proof()
    dumps = folder / "dumps"
    try:
        ask("stream proof")
        if task != "forward":
            proof.loss = _number(ask("gradient").get("loss"))
            proof.activation = _dump(ask, "activation", dumps)
            proof.gradient = _dump(ask, "gradient", dumps)
            ask("stream proof2")
            ask("gradient")
            proof.other_gradient = _dump(ask, "gradient", dumps / "other")
            ask("stream proof")
        if task == "train":
            ask("reset")
            proof.losses = _run(runner, files)
            proof.parameter = _dump(ask, "parameter", dumps)
        proof.output = _outputs(ask, dumps)
        if task != "forward":
            ask("stream train")
            ask("reset")
            proof.train_losses = _run(runner, files)
        if task == "train":
            proof.train_parameter = _dump(ask, "parameter", dumps / "train")
        if task == "train" and stepwise:
            ask("stream proof")
            ask("reset")
            for step in range(PROOF_STEPS):
                ask("gradient")
                proof.step_gradients.append(_dump(ask, "gradient", dumps / f"step{step}"))
                runner.run_stage(Stage("train", 1))
            proof.stepwise_parameter = _dump(ask, "parameter", dumps / "stepwise")
            proof.deterministic = _same_bits(proof.parameter, proof.stepwise_parameter)
            if not proof.deterministic:
                # The gradients in between may have made the difference, and that would not be chance.
                ask("stream proof")
                ask("reset")
                _run(runner, files)
                again = _dump(ask, "parameter", dumps / "again")
                proof.deterministic = _same_bits(proof.parameter, again)
    finally:
        shutil.rmtree(dumps, ignore_errors=True)
    return proof


def sequence_steps(task: str) -> dict[str, int]:
    """How many passes of each kind the sequence of a task has for the judge (not stepwise)."""
    if task == "forward":
        return {"forward": 1}
    return {"gradient": 2, "train": PROOF_STEPS * (2 if task == "train" else 1), "forward": 1}


def _same_bits(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def _number(value: object) -> float:
    # JSON has no NaN: a loss that is not finite arrives as null.
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _run(runner: SegmentRunner, files: SampleFiles) -> list[float]:
    before = files.losses
    runner.run_stage(Stage("train", PROOF_STEPS))
    return files.read_losses(before)


def _dump(ask: Ask, role: str, dumps: Path) -> Tensors:
    folder = dumps / role
    folder.mkdir(parents=True, exist_ok=True)
    ask(f"dump {role} {folder}")
    return {path.name[: -len(".npy")]: _load(path) for path in sorted(folder.glob("*.npy"))}


def _outputs(ask: Ask, dumps: Path) -> NDArray[Any]:
    dumps.mkdir(parents=True, exist_ok=True)
    path = dumps / "outputs.npy"
    ask(f"outputs {path}")
    return _load(path)


def _load(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise LaunchError("crash", f"the contender left no readable {path.name}: {error}") from error
    return array


def relative_l2(mine: NDArray[Any], theirs: NDArray[Any]) -> float:
    """|mine - theirs| / |theirs|, in double precision; the plain distance where |theirs| is 0."""
    wide, judged = mine.astype(np.float64), theirs.astype(np.float64)
    norm = float(np.linalg.norm(judged))
    distance = float(np.linalg.norm(wide - judged))
    return distance / norm if norm > 0 else distance
