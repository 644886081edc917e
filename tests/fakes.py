"""An engine that measures nothing: scripted contenders with known times, for everything above the launch."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.cases.case import NO_NETWORK, Case, Workload
from timetrial.cases.keys import is_callable_word
from timetrial.core.network import LeastBytes
from timetrial.errors import InputError, Unavailable
from timetrial.experiment.engine import Engine
from timetrial.races.rounds import FEWEST as ROUNDS
from timetrial.records import store
from timetrial.records.files import mark_of
from timetrial.records.model import (
    Evaluation,
    LaunchRecord,
    Memory,
    Outcome,
    Parity,
    ProfiledLayer,
    Segment,
    Setting,
)
from timetrial.records.samples import COLUMNS as SAMPLED
from timetrial.records.samples import SAMPLES_FILE

STEP_NS = {"fast": 100_000, "slow": 200_000, "other": 150_000}
FAILS: dict[str, Outcome] = {"crashes": "crash", "hangs": "hang", "is_nan": "nan"}
KERNELS = {"other": "Haswell"}  # of the values of blas.library
FLAGS = {"blind": ("reads_no_data",), "chancy": ()}
BACKENDS = (*STEP_NS, *FAILS, *FLAGS, "wrong", "mismatched", "absent", "flaky", "forgetful")

# A convolution without data gradient and a dense layer: 1,000,000 multiply-accumulates a step.
NODES = [
    {
        "name": name, "kind": kind,
        "parameters": [{"name": f"{name}.weight", "shape": shape, "role": "parameter"}] if shape else [],
    }
    for name, kind, shape in (
        ("images", "input", []), ("conv1", "conv2d", [2, 3]), ("relu1", "relu", []), ("fc1", "dense", [4]),
        ("loss", "softmax_cross_entropy", []),
    )
]  # fmt: skip
PASSES = ("forward", "backward_data", "backward_weights")
WORK = {
    name: {
        "multiply_accumulates": dict(zip(PASSES, products, strict=True)),
        "bytes": dict(zip(PASSES, moved, strict=True)),
    }
    for name, products, moved in (
        ("images", (0, 0, 0), (0, 0, 0)),
        ("conv1", (200_000, 0, 200_000), (8_000, 0, 8_000)),
        ("relu1", (0, 0, 0), (4_000, 6_000, 0)),
        ("fc1", (200_000, 200_000, 200_000), (2_000, 2_000, 2_000)),
        ("loss", (0, 0, 0), (100, 100, 0)),
    )
}
# What a profiled step takes by layer and direction, in thousandths, as a contender might name them.
PROFILED = {
    ("loss", "loss"): 10, ("conv1", "backward_weights"): 300, ("conv1", "forward"): 200,
    ("relu1", "forward"): 20, ("relu1", "backward"): 30, ("fc1", "forward"): 140,
    ("fc1", "backward_data"): 130, ("fc1", "backward_weights"): 120, ("*", "update"): 50,
}  # fmt: skip


def network(name: str) -> SimpleNamespace:
    if name not in ("mlp", "lenet5"):
        raise InputError(f"There is no network '{name}'.")
    optimizer = {"name": "sgd", "learning_rate": 0.02, "momentum": 0.9, "weight_decay": 0.0}
    return SimpleNamespace(name=name, dataset="digits28", batch_size=64, optimizer=optimizer, epochs=12)


def stamps_of(durations_ns: npt.ArrayLike, start_ns: int = 1_000_000) -> npt.NDArray[np.uint64]:
    """A segment's stamps: its start, then the end of each step."""
    times = start_ns + np.concatenate([[0], np.cumsum(np.asarray(durations_ns, np.int64))])
    boundaries = np.ones(len(times), np.uint64)
    boundaries[0] = 0
    return (times.astype(np.uint64) << np.uint64(8)) | boundaries


def write_launch(
    plan: Any, record: LaunchRecord, durations_ns: list[list[int]], kinds: list[str]
) -> LaunchRecord:
    """Fills in the segments and writes the three files of a launch."""
    segments, stamps = [], []
    first = steps = 0
    for durations, kind in zip(durations_ns, kinds, strict=True):
        own = stamps_of(durations, start_ns=10**9 * (len(stamps) + 1))
        segments.append(Segment(kind=kind, steps=len(durations), first_stamp=first, stamps=len(own),
                                first_loss=steps, losses=len(durations)))  # fmt: skip
        first, steps = first + len(own), steps + len(durations)
        stamps.append(own)
    files = {
        "stamps.bin": np.concatenate([np.empty(0, np.uint64), *stamps]).astype("<u8").tobytes(),
        "losses.bin": np.linspace(2.3, 0.1, steps).astype("<f8").tobytes(),
    }
    plan.folder.mkdir(parents=True)
    for name, data in files.items():
        (plan.folder / name).write_bytes(data)
    marks = {name: mark_of(data) for name, data in files.items()}
    record = record.model_copy(update={"segments": segments, "files": marks})
    (plan.folder / "record.json").write_text(record.model_dump_json(indent=1), encoding="utf-8")
    return record


@dataclass
class FakeHeat:
    """Its launches have ended when its rounds are over."""

    launches: list[LaunchRecord]
    ridden: Any = None

    def records(self) -> list[LaunchRecord]:
        return self.launches

    def cancel(self) -> None:
        pass


@dataclass
class FakeEngine:
    """`log` has every launch in order; `before` runs before each one."""

    log: list[Any] = field(default_factory=list)
    before: Callable[[Any], None] = lambda plan: None
    locked: int = 0
    witnesses: dict[str, float | None] = field(default_factory=dict)  # of every launch
    factor: Callable[[Any], float] = lambda plan: 1.0  # on the steps of a speed launch, or one of a race
    held: Callable[[Any], int] = lambda plan: 50 * 2**20  # bytes
    answers: Callable[[Any], Any] | None = None  # of a learning launch: (2, images), predicted and true class
    free_bytes: int = 10**9
    frameworks: Collection[str] = ()  # all others are native
    parity: dict[str, Parity] = field(default_factory=dict)  # by backend: another than that it passed
    plain: Callable[[float], list[int]] | None = None  # step time -> the steps behind the first, if scripted

    def engine(self) -> Engine:
        return Engine(
            resolve=self.resolve,
            validate_settings=self.validate_settings,
            check=self.check,
            prepare=self.prepare,
            launch=self.launch,
            heat=self.heat,
            together=self.together,
            lock=self.lock,
            machine=lambda: {"cpu": "Test CPU", "usable_cpus": 2, "cpus": 2},
            peak_flops=lambda threads: 1e11 * threads,
            memory_bandwidth=lambda threads: 5e9 * threads,
            cache_bandwidth=lambda threads: 5e10 * threads,
            free_bytes=lambda: self.free_bytes,
            harness=lambda: {"clock_ns": 20.0},
        )

    def resolve(self, case: Case) -> Any:
        if is_callable_word(case.backend):
            flags = ("reads_no_data", "unprovable")
            return SimpleNamespace(kind="callable", fingerprint="0", flags=flags, tree=None)
        if case.backend not in BACKENDS:
            raise InputError(f"There is no backend '{case.backend}'.")
        if case.backend == "absent":
            raise Unavailable("absent needs the module absent: pip install absent")
        kind = "framework" if case.backend in self.frameworks else "native"
        return SimpleNamespace(kind=kind, fingerprint="0", flags=FLAGS.get(case.backend, ()), tree=None)

    def validate_settings(self, case: Case, contender: Any, spanned: Collection[str]) -> None:
        for name in case.settings:
            if name not in ("threads", "affinity", "blas.library", "openmp.proc_bind", "malloc"):
                raise InputError(f"backend '{case.backend}' has no setting '{name}'.")

    def prepare(self, workload: Workload, seed: int, epochs: int, reads_data: bool) -> Any:
        return SimpleNamespace(description={"dataset": workload.dataset}, reads_data=reads_data)

    def check(self, workload: Workload) -> Any:
        if workload.network == NO_NETWORK:
            return SimpleNamespace(network=None, samples=0, has_accuracy=False)
        if workload.batch_size > 1437:
            raise InputError(f"batch_size is {workload.batch_size}, but there are 1437 images.")
        graph = SimpleNamespace(
            batch_size=workload.batch_size,
            couples_batch=False,
            carries_state=False,
            check_training=lambda: None,
            multiply_accumulates=lambda task: 1_000_000,
            parameter_count=10,
            parameter_bytes=40,
            activation_bytes=1_000 * workload.batch_size,
            least_bytes=lambda task, states: LeastBytes(0, 0, 0, 1_000 * workload.batch_size),
            nodes=NODES,
            work=WORK.__getitem__,
        )
        return SimpleNamespace(network=graph, samples=1437, has_accuracy=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        self.locked += 1
        try:
            yield
        finally:
            self.locked -= 1

    def launch(self, plan: Any) -> LaunchRecord:
        assert self.locked == 1
        self.before(plan)
        self.log.append(plan)
        backend = plan.case.backend
        record = LaunchRecord(
            id=plan.folder.name, case=plan.case.id, purpose=plan.purpose, seed=plan.seed, block=plan.block,
            position=plan.position, heat=plan.heat, heat_size=plan.heat_size, at_once=plan.at_once,
            outcome="ok", stop_reason="converged", duration_s=1.0,
            started_at="2026-01-01T00:00:00+00:00",
            memory=Memory(steady_peak=80 * 2**20, steady_anonymous_peak=self.held(plan)),
            settings=_settings(plan.case),
            facts={"blas.kernel": KERNELS.get(plan.case.settings.get("blas.library", ""), "SkylakeX")},
            witnesses=self.witnesses,
        )  # fmt: skip
        record = _failed(record, backend, plan)
        if plan.purpose == "proof" and backend in self.parity:
            record = record.model_copy(update={"parity": self.parity[backend]})
        if record.outcome not in ("ok", "mismatch"):
            return write_launch(plan, record, [], [])
        if plan.purpose == "proof":
            return write_launch(plan, record, [], [])
        if plan.purpose == "learning":
            evaluation = Evaluation(steps=9, epoch=12, accuracy=0.97 + 0.001 * plan.seed, loss=0.1,
                                    samples=360, duration_ns=10**6)  # fmt: skip
            record = record.model_copy(update={"evaluations": [evaluation]})
            write_launch(plan, record, [[STEP_NS.get(backend, 10**5)] * 10], ["train"])
            if self.answers is not None:
                store.write_answers(plan.folder, self.answers(plan))
            return record
        if plan.purpose == "profile":
            return self._profile(plan, record)
        if plan.purpose == "race":
            return self._race(plan, record)
        step = STEP_NS.get(backend, 100_000) // int(plan.case.settings.get("threads", "1"))
        step += 1000 * plan.block  # launches differ, alike for all: blocks cancel it nearly
        step = int(step * self.factor(plan))
        if self.plain is not None:
            return write_launch(plan, record, [[10 * step], self.plain(step)], ["first", "steady"])
        durations = [[10 * step], [2 * step] * 3, [2 * step, *[step] * 20], [2 * step, *[step] * 20]]
        return write_launch(plan, record, durations, ["first", "warmup", "steady", "steady"])

    def heat(self, plans: Any, course: Any) -> FakeHeat:
        for place, plan in enumerate(plans):
            assert plan.at_once == (1 if place in course.alone else len(course.starts_on))
        course.started()
        return FakeHeat([self.launch(plan) for plan in plans])

    def together(
        self, plans: Any, at_once: int, done: Any, left_s: float | None = None
    ) -> list[LaunchRecord]:
        records = []
        for plan in plans:
            records.append(self.launch(dataclasses.replace(plan, at_once=at_once)))
            done(records[-1])
        return records

    def _race(self, plan: Any, record: LaunchRecord) -> LaunchRecord:
        """Turns of twelve steps, the first two cold; launches scatter by half a percent."""
        rng = np.random.default_rng(plan.block * 100 + plan.position)
        step = STEP_NS.get(plan.case.backend, 100_000) * self.factor(plan) * (1 + 0.005 * rng.normal())
        turns = [[int(2 * step)] * 2 + [int(step)] * 10 for _ in range(ROUNDS)]
        kinds = ["first", "warmup"] + ["turn"] * ROUNDS
        return write_launch(plan, record, [[10**6], [10**6] * 3, *turns], kinds)

    def _profile(self, plan: Any, record: LaunchRecord) -> LaunchRecord:
        """Layers that add up to a step, and plain steps that take 2 % less."""
        backend = plan.case.backend
        if backend == "other":
            reason = "other does not time its layers"
            record = record.model_copy(update={"outcome": "unavailable", "reason": reason})
            return write_launch(plan, record, [], [])
        step = STEP_NS[backend] // 1000
        times = [[step * share - 100, step * share, step * share + 100] for share in PROFILED.values()]
        layers = [ProfiledLayer(node=node, direction=direction) for node, direction in PROFILED]
        record = record.model_copy(update={"profiled_steps": 3, "profiled_layers": layers})
        record = write_launch(plan, record, [[980 * step] * 9] * 2, ["steady"] * 2)
        segments = [one.model_copy(update={"cpu_ns": 9 * 900 * step}) for one in record.segments]
        record = record.model_copy(update={"segments": segments})
        (plan.folder / "record.json").write_text(record.model_dump_json(indent=1), encoding="utf-8")
        np.array(times, "<u8").tofile(plan.folder / "layers.bin")
        return record


def write_looks(folder: Path, looks: Sequence[Mapping[str, int]], end: str = "\n") -> Path:
    """samples.tsv of a launch; what a look does not say is 0."""
    rows = [[str(one.get(name, 0)) for name in SAMPLED] for one in looks]
    text = "\n".join("\t".join(row) for row in [list(SAMPLED), *rows])
    (folder / SAMPLES_FILE).write_text(text + end)
    return folder


def _settings(case: Case) -> list[Setting]:
    return [
        Setting(name=name, asked=value, effective=value, how_read="fake", status="applied")
        for name, value in case.settings.items()
    ]


def _failed(record: LaunchRecord, backend: str, plan: Any) -> LaunchRecord:
    change: dict[str, Any] = {}
    if plan.purpose == "proof":
        change = {"parity": Parity(status="passed", judge="reference", max_error=1e-7, tensor="conv1.weight")}
        if backend == "chancy":
            change["parity"] = change["parity"].model_copy(update={"deterministic": False})
        elif backend == "wrong":
            reason = "gradient conv1.weight: relative L2 error 0.5, tolerance 2e-05"
            parity = Parity(status="failed", max_error=0.5, tensor="conv1.weight", reason=reason)
            change = {"outcome": "wrong", "reason": reason, "parity": parity}
    elif backend in FAILS:
        change = {"outcome": FAILS[backend], "reason": f"the contender {backend}\nTraceback: much more"}
    elif backend == "flaky" and plan.purpose in ("speed", "race") and plan.block == 1:
        change = {"outcome": "crash", "reason": "once"}
    elif backend == "forgetful" and plan.purpose == "learning":
        change = {"outcome": "crash", "reason": "in learning"}
    elif backend == "mismatched":
        change = {"outcome": "mismatch", "reason": "threads asked 1, working 2"}
    return record.model_copy(update=change)


def replaced(experiment: Any, **measure: Any) -> Any:
    """The experiment with other sizes."""
    spec = experiment.spec
    return dataclasses.replace(
        experiment, spec=spec.model_copy(update={"measure": spec.measure.model_copy(update=measure)})
    )
