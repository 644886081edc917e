"""What a launch asks of its contender beside steps: tensors, resets, single gradients; over its pipes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.launch.counted_steps import CountedSteps
from timetrial.launch.decisions import Stage
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.segments import SampleFiles, SegmentRunner
from timetrial.processes.events import Ask, Done, DumpDone, GradientDone, broken
from timetrial.processes.left import empty, largest_array_bytes, read_array, remove
from timetrial.questions.observed import Tensors
from timetrial.records.model import SegmentKind


class LaunchContact:
    """A contender's process, over its pipes. What it dumps is read, or mapped from a copy, and taken away at
    once."""

    def __init__(
        self,
        ask: Ask,
        runner: SegmentRunner,
        files: SampleFiles,
        plan: LaunchPlan,
        kind: SegmentKind,
        counted: CountedSteps,
    ):
        self._ask = ask
        self._runner = runner
        self._files = files
        self._folder = plan.folder.resolve() / "dumps"
        self._most_bytes = largest_array_bytes(plan.prepared.job)
        self._kind = kind
        self._counted = counted
        self._own: tuple[Path, int] | None = None  # where it dumps: a folder, and its descriptor

    def stream(self, name: str) -> None:
        """The next steps use this stream, from its first batch."""
        self._ask(f"stream {name}", Done)
        self._counted.stream(name)

    def reset(self) -> None:
        """Initial values, empty optimizer, first batch."""
        self._ask("reset", Done)
        self._counted.reset()

    def run(self, steps: int) -> list[float]:
        """A segment through the loop and the verb that are timed."""
        before = self._files.losses
        first = len(self._runner.segments)
        self._runner.run_stage(Stage(self._kind, steps))
        self._counted.took(steps, self._runner.segments[first:])
        return self._files.read_losses(before)

    def gradient(self) -> float:
        """One step without update; its loss."""
        loss = self._ask("gradient", GradientDone).loss
        return float("nan") if loss is None else loss

    def dump(self, role: str) -> Tensors:
        """Every tensor of a role."""
        return self._tensors(f"dump {role}")

    def show(self, places: NDArray[np.int64] | None) -> Tensors:
        """What the layers make of the batch that comes next, at these places of it."""
        words = "all" if places is None else ",".join(map(str, places.tolist()))
        return self._tensors(f"show {words}")

    def outputs(self) -> NDArray[Any]:
        """Inference between steps."""
        return self._array("outputs")

    def predicted(self) -> NDArray[Any]:
        """Of the last step of the task forward."""
        return self._array("predicted")

    def close(self) -> None:
        """Takes the folder away; what was read stays."""
        if self._own is not None:
            os.close(self._own[1])
            self._own = None
        remove(self._folder)

    def _tensors(self, command: str) -> Tensors:
        folder, descriptor = self._place()
        names = self._ask(f"{command} {folder}", DumpDone).tensors
        try:
            return {name: read_array(folder / f"{name}.npy", self._most_bytes) for name in sorted(names)}
        finally:
            empty(descriptor)

    def _array(self, command: str) -> NDArray[Any]:
        folder, descriptor = self._place()
        path = folder / f"{command}.npy"
        self._ask(f"{command} {path}", Done)
        try:
            return read_array(path, self._most_bytes)
        finally:
            empty(descriptor)

    def _place(self) -> tuple[Path, int]:
        """An empty folder. It is one for all dumps, and emptied through its descriptor, because to remove a
        folder takes milliseconds on some file systems and a proof has a hundred dumps."""
        try:
            if self._own is None:
                self._folder.mkdir(exist_ok=True)
                folder = Path(tempfile.mkdtemp(dir=self._folder))
                self._own = folder, os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            folder, descriptor = self._own
            if os.path.samestat(os.lstat(folder), os.fstat(descriptor)):
                return folder, descriptor
        except OSError as error:
            raise broken(f"nothing can be put into its folder any more: {error.strerror}") from None
        raise broken("nothing can be put into its folder any more: something else stands in its place")
