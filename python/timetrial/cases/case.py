"""A case: one point of an experiment, one row of its table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timetrial.optimizers import flat_keys

TASKS = ("train", "gradient", "forward")
NO_NETWORK = "none"  # the network, and the data set, of a callable that was given none
# Settings that cannot change what a proven contender learns: those of when and where it computes.
# And what begins so: malloc.top_pad.
WITHOUT_INFLUENCE = (
    "threads", "inter_op_threads", "affinity", "nice", "cache", "malloc", "memory", "openmp", "samples",
    "counters",
)  # fmt: skip
RESERVED_AXES = ("backend", "network", "threads", "task", "device", "dtype", "semantics")


@dataclass(frozen=True)
class Workload:
    """What is trained. Everything that decides the arithmetic, nothing that decides who does it."""

    network: str  # a known name, a path to .toml, "package.module:function", or NO_NETWORK
    dataset: str
    batch_size: int | None  # None: a callable that was given none
    optimizer: Mapping[
        str, Any
    ]  # {"name": "sgd", "learning_rate": ..., "momentum": ..., "weight_decay": ...}
    dataset_folder: str | None = None  # where its files lie; None: where they are installed
    buckets: int = 1  # groups of sequences of like length that batches are made of; 1: of any length


@dataclass(frozen=True)
class Case:
    """workload x backend x settings. Values of settings are the words the user gave ("2", "0-1")."""

    backend: str  # a known name, a path to a plug-in (.so) or to an adapter's folder, the word of a callable
    workload: Workload  # what is trained
    task: str = "train"  # train, gradient or forward
    device: str = "cpu"  # where it computes
    dtype: str = "f32"  # type of the numbers
    semantics: str = "equal"  # equal: the same arithmetic for all
    settings: Mapping[str, str] = field(default_factory=dict)  # name -> word, as asked
    axes: Mapping[str, Any] = field(
        default_factory=dict
    )  # what the table shows: reserved axes and all that vary
    repeat: int = 1  # 2, 3, ...: the same content once more (A/A)

    @property
    def id(self) -> str:
        """The content's id; repetitions of a case (A/A) add their number."""
        return self.content_id if self.repeat == 1 else f"{self.content_id}-{self.repeat}"

    @property
    def content_id(self) -> str:
        """Twelve hex digits of the content: the same case has the same id on every machine."""
        return _digest(self._content(self.settings))

    @property
    def training_id(self) -> str:
        """The same for cases that differ only in what cannot change what they learn."""
        return _digest(self.training_content)

    @property
    def training_content(self) -> list[Any]:
        """Everything but what cannot change what is learned, as plain values."""
        return self._content(
            {
                key: value
                for key, value in self.settings.items()
                if key.partition(".")[0] not in WITHOUT_INFLUENCE
            }
        )

    def facts(self) -> dict[str, Any]:
        """Everything that a reference may name or that may separate two cases; as records/reference.py has it
        of a record."""
        return {
            "backend": self.backend,
            "dataset": self.workload.dataset,
            "batch_size": self.workload.batch_size,
            **({"buckets": self.workload.buckets} if self.workload.buckets > 1 else {}),
            **flat_keys(self.workload.optimizer),
            **self.settings,
            **self.axes,
        }

    def _content(self, settings: Mapping[str, str]) -> list[Any]:
        content: list[Any] = [
            self.backend,
            self.workload.network,
            self.workload.dataset,
            self.workload.batch_size,
            dict(self.workload.optimizer),
            self.task,
            self.device,
            self.dtype,
            self.semantics,
            dict(settings),
        ]
        if self.workload.buckets > 1:  # what has none keeps the id that it had before there were any
            content.append({"buckets": self.workload.buckets})
        return content


def _digest(content: list[Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
