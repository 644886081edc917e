"""What a launch is asked to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.cases.case import Case
from timetrial.records.model import Library, Parity, Purpose
from timetrial.statistics.stopping import StopRule

if TYPE_CHECKING:
    from timetrial.contenders.registry import Contender
    from timetrial.workloads import Prepared


@dataclass(frozen=True)
class Limits:
    """When we lose patience. Only running time counts: time in which the contender was stopped, or waited
    for a processor, does not."""

    start_timeout_s: float = 300.0  # from start to `ready`: import, compilation, build
    progress_timeout_s: float = 60.0  # without a new stamp, or without the answer to a command


@dataclass(frozen=True)
class Measure:
    """How long and how much."""

    rule: StopRule = field(default_factory=lambda: StopRule(half_width=0.03))  # of a speed launch
    min_ns: int = 400_000_000  # of the plain steps of a speed launch, before the rule is asked
    budget_ns: int = 1_500_000_000  # of the plain steps of a speed launch, whatever the rule says
    warmup_ns: int = 500_000_000  # of a profile launch; at most, of a launch in a heat
    steady_ns: int = 1_000_000_000  # of a profile launch: its plain steps
    # Of a launch in a heat, so that a period of its steps shows: as long as this, or RHYTHM_STEPS.
    rhythm_ns: int = 0
    max_steps: int = 1_000_000  # of a speed launch, all segments together: bounds the size of stamps.bin
    resource_ns: int = 2_000_000_000  # of the steps of a resource launch: 40 looks
    epochs: int = 1  # of a learning launch
    most_learning_steps: int | None = None  # where it ends at the latest; None: after its epochs
    passes: bool = True  # False: steps go on and on; only to see what passes are for
    detailed_steps: int = 10  # of a speed launch, with a stamp after each part; 0: none
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class KeptProof:
    """What a launch must have in common with its proof, which an earlier run made."""

    libraries: Sequence[Library]  # that it had mapped
    same_settings: bool = True  # False: other threads, say, with which it may have needed fewer of them


@dataclass(frozen=True)
class LaunchPlan:
    """One launch of one case.

    `proof` is the parity of the same case and the same seed: its losses are compared with the first ones
    of this launch. Leave it None where weights or order differ (another seed).
    """

    case: Case
    prepared: Prepared
    purpose: Purpose
    folder: Path  # made if missing; gets record.json, stamps.bin, losses.bin, stdout.txt, stderr.txt
    seed: int = 1
    block: int = 0
    heat: int | None = None  # its number in the experiment, where the launch takes turns with others
    heat_size: int | None = None  # launches in that heat
    position: int = 0
    at_once: int = 1  # contenders that may be alive with it, running: several where nothing is timed
    measure: Measure = field(default_factory=Measure)
    proof: Parity | None = None
    kept: KeptProof | None = None  # None: the proof was made in this run, or there is none
    environment: Mapping[str, str] = field(default_factory=dict)  # what the experiment's [environment] names
    goes_on: str | None = None  # what goes on while its steps are stopped, which is why it is by itself
    processors: frozenset[int] | None = None  # of this launch, where its case names none; as many as threads
    contender: Contender | None = None  # found by resolve(case) where None

    @property
    def predicts_classes(self) -> bool:
        """Whether it trains, and there are test samples with labels."""
        job, network = self.prepared.job, self.prepared.job["network"]
        if network is None or self.case.task != "train" or "test" not in job["streams"]:
            return False
        nodes = {node["name"]: node for node in network["nodes"]}
        loss = nodes[network.get("output_loss", network["loss"])]
        return bool(nodes[loss["inputs"][1]].get("dtype") == "i64")

    @property
    def id(self) -> str:
        """The launch's name in records: its folder's."""
        return self.folder.name
