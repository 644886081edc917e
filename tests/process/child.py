"""Speaks to timetrial-child directly, without supervisor: a job of a small dense network, and the pipes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.core import (
    Network,
    child_path,
    create_recorder_file,
    images_and_labels,
    native_dir,
    read_window,
)

BATCH, FEATURES, CLASSES, SAMPLES = 4, 6, 3, 10
Event = dict[str, Any]
Job = dict[str, Any]


def write_job(
    folder: Path, backend: str = "reference", loss: str = "softmax_cross_entropy"
) -> dict[str, Any]:
    """Files of a workload in the folder, and the job as a dict, ready to be spoiled."""
    random = np.random.default_rng(1)
    network = Network(
        [
            {"name": "fc", "kind": "dense", "attributes": {"units": CLASSES}},
            {"name": "loss", "kind": loss, "inputs": ["fc", "labels"]},
        ],
        batch_size=BATCH,
        inputs=images_and_labels((FEATURES,)),
    )
    arrays: dict[str, NDArray[Any]] = {
        "fc.weight": random.normal(size=(CLASSES, FEATURES)).astype(np.float32),
        "fc.bias": random.normal(size=CLASSES).astype(np.float32),
        "images": random.normal(size=(SAMPLES, FEATURES)).astype(np.float32),
        "labels": random.integers(0, CLASSES, SAMPLES),
        "order": np.stack([random.permutation(SAMPLES)[:BATCH] for _ in range(3)]),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    described = network.to_job()
    for node in described["nodes"]:
        for parameter in node["parameters"]:
            parameter["file"] = str(folder / f"{parameter['name']}.npy")
    data = {"tensors": {name: str(folder / f"{name}.npy") for name in ("images", "labels")}}
    ordered = {**data, "order": str(folder / "order.npy")}
    return {
        "protocol": 2,
        "launch": "test",
        "folder": str(folder),
        "backend": {"name": backend, "plugin": str(native_dir() / "backends" / f"{backend}.so")},
        "task": "train",
        "device": "cpu",
        "dtype": "f32",
        "batch_size": BATCH,
        "settings": {},
        "network": described,
        "optimizer": {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.0},
        "streams": {"train": ordered, "proof": ordered, "test": data},
    }


def array_of(folder: Path, name: str) -> NDArray[Any]:
    found: NDArray[Any] = np.load(folder / f"{name}.npy")
    return found


class Child:
    def __init__(self, folder: Path, job: Job | str, recorder: int | None = None):
        if isinstance(job, dict):
            (folder / "job.json").write_text(json.dumps(job))
            job = str(folder / "job.json")
        self.recorder = create_recorder_file() if recorder is None else recorder
        read_commands, self._commands = os.pipe()
        self._events, write_events = os.pipe()
        # Out of the way of 3, 4 and 5, so that no dup2 overwrites what a later one needs.
        high = [
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in (read_commands, write_events, self.recorder)
        ]
        log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.pid = os.posix_spawn(
            child_path(),
            [str(child_path()), job],
            dict(os.environ),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, str(folder / "stdout.txt"), log, 0o644),
                (os.POSIX_SPAWN_OPEN, 2, str(folder / "stderr.txt"), log, 0o644),
                *((os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(high)),
            ],
        )
        for fd in (read_commands, write_events, *high):
            os.close(fd)
        self._reader = open(self._events, encoding="utf-8")  # noqa: SIM115

    def event(self) -> Event | None:
        """The next; None at the end."""
        line = self._reader.readline()
        return json.loads(line) if line else None

    def expect(self, kind: str) -> Event:
        event = self.event()
        assert event is not None
        assert event["event"] == kind, event
        return event

    def send(self, command: str) -> None:
        os.write(self._commands, command.encode() + b"\n")

    def do(self, command: str) -> Event:
        self.send(command)
        done = self.expect("done")
        assert done["command"] == command.split()[0]
        return done

    def losses(self, window: int = 0) -> list[float]:
        return [float(loss) for loss in read_window(self.recorder, window)[1]]

    def hang_up(self) -> None:
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1

    def wait(self) -> int:
        """Exit code, or minus the signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        self.hang_up()
        self._reader.close()
        os.close(self.recorder)


@contextlib.contextmanager
def child(folder: Path, job: Job | str, recorder: int | None = None) -> Iterator[Child]:
    contender = Child(folder, job, recorder)
    try:
        yield contender
    finally:
        contender.close()
        with contextlib.suppress(ChildProcessError):
            contender.wait()
