"""Record schema 1: what a launch and an experiment leave on disk. SCHEMA.md explains every field.

A record is written once and never changed. Fields are only ever added, with a default, so that old
records load; a change of meaning raises SCHEMA_VERSION. Units live in names.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SCHEMA_VERSION = 1

Purpose = Literal["proof", "speed", "learning", "profile", "resources", "race"]
TIMED: tuple[Purpose, ...] = ("speed", "profile")  # launches with steady, plain steps
# `damaged` is in no record: the reader says it of a launch whose files do not agree with its record.
Outcome = Literal[
    "ok", "mismatch", "wrong", "nan", "oom", "crash", "hang", "capped", "unavailable", "damaged"
]
SettingStatus = Literal["applied", "adjusted", "unverifiable", "ignored", "unsupported"]
Direction = Literal["forward", "loss", "backward", "backward_data", "backward_weights", "update", "reorder"]
FloatMode = Literal["on", "off", "results", "operands"]  # subnormals count as 0: in both, in one of them
SegmentKind = Literal["first", "warmup", "steady", "train", "detailed", "turn", "judged"]


class Model(BaseModel):
    """Unknown fields are kept out loudly: a typo in a record is a bug of ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __str__(self) -> str:
        return repr(self)


class Phase(Model):
    """The end of a part of a launch (CLOCK_MONOTONIC), and the memory held then."""

    name: str
    ns: int
    rss_bytes: int | None = None
    mapped_bytes: int | None = None  # of these, pages of files and shared memory; None: an older record


class Setting(Model):
    """One knob: what was asked, what is in force, and how we know."""

    name: str
    asked: str | None
    effective: str | None
    how_read: str
    status: SettingStatus


class Segment(Model):
    """One segment; its stamps are stamps.bin[first_stamp : first_stamp + stamps], likewise its losses."""

    kind: SegmentKind
    steps: int
    first_stamp: int
    stamps: int
    first_loss: int
    losses: int
    cpu_ns: int | None = None
    rss_bytes: int | None = None
    mapped_bytes: int | None = None  # of these, as in a phase
    window_bytes: int = 0
    # Of sequences, that its steps computed, useful or not. None: the contender does not count them.
    sequence_steps: int | None = None
    resets: int = 0  # to the initial state, within the segment
    reset_ns: int = 0  # of all of them, outside every step
    behind_ns: int = 0  # that work went on behind its last step, where steps do not wait for theirs

    @field_validator("kind", mode="before")
    @classmethod
    def _older_word(cls, value: object) -> object:
        """Version 0.1 called a turn by the only occasion there was for one."""
        return "turn" if value == "race" else value


class Turn(Model):
    """One turn of a launch in a heat, and who else had the processors meanwhile; None: the kernel does not
    say. A round has several where others disturbed."""

    round: int
    disturbed: bool = False
    others_cpus: float | None = None
    steal_ratio: float | None = None
    wait_ratio: float | None = None


class Passes(Model):
    """The steps that are timed: the first `steps` from the initial state, again and again."""

    steps: int | None  # None: the contender cannot be reset, so its steps go on and on
    resets: int = 0
    reset_ns: int = 0  # of all resets together, outside every step


class TimeSteps(Model):
    """Steps along time of the sequences of a batch, on average over the timed steps. Of several inputs of
    lengths those of the first."""

    useful: float  # that count: the sum of the lengths
    computed: float | None = None  # None: nobody says, or an older record
    padded: int  # all there are, were every sequence as long as the longest can be

    @property
    def useful_share(self) -> float:
        """Of all there are."""
        return self.useful / self.padded


class Subnormals(Model):
    """A tensor with numbers so small that arithmetic on them is slow."""

    tensor: str
    count: int
    size: int  # of all its numbers


class Evaluation(Model):
    """After `steps` steps. Its time is in no step."""

    steps: int
    epoch: int
    accuracy: float
    loss: float
    samples: int
    duration_ns: int
    ended_ns: int | None = None  # CLOCK_MONOTONIC; None: an older record


MemoryPhase = Literal["start", "import", "build", "first step", "steady", "evaluation", "after"]


class MemoryAt(Model):
    """What the whole process tree held at the end of a phase, each page once, and at most since the end of
    the one before. None: only the contender itself could look, which tells of less."""

    phase: MemoryPhase
    resident_bytes: int  # all of it
    anonymous_bytes: int  # private, backed by no file
    shared_bytes: int | None = None  # memory that processes can share; without the recorder's window
    file_bytes: int | None = None  # pages of mapped files: programs, libraries, data sets
    anonymous_peak_bytes: int | None = None


class Memory(Model):
    """From the kernel, in bytes resident; the recorder's window is taken off the peaks. None: not reached."""

    after_import: int | None = None
    after_build: int | None = None
    after_first_step: int | None = None
    steady_peak: int | None = None
    lifetime_peak: int | None = None
    # Of the steady peak, without pages of mapped files (the data set, libraries) and shared memory. None: an
    # older record.
    steady_anonymous_peak: int | None = None
    phases: list[MemoryAt] = Field(default_factory=list)  # those it came to, in order; []: an older record

    @property
    def held(self) -> int | None:
        """What the contender held while steady, at most: private memory where that is known."""
        return self.steady_peak if self.steady_anonymous_peak is None else self.steady_anonymous_peak


class Thread(Model):
    """A thread of the contender while steady."""

    tid: int
    name: str
    cpu_ns: int
    allowed_cpus: str
    wait_ns: int = 0  # ready to run, while others had the CPUs
    flush_to_zero: FloatMode | None = None  # behind the last timed step; None: not read


class Counter(Model):
    """What processors, the kernel or the machine's energy counters say of a step while steady; the unit is in
    its name, else it is a number of events."""

    name: str
    per_step: float | None = None  # None: it was not counted
    running_share: float | None = None  # of its time in which it was counted; below 1: scaled up from that
    reason: str | None = None  # why it was not counted: the errno, and what would change it


class Library(Model):
    """A mapped library that computes, schedules or allocates. What it says of itself is None where the
    contender did not ask it."""

    path: str
    version: str | None = None
    sha256: str | None = None
    kind: str | None = None  # "blas", "openmp"
    vendor: str | None = None  # "OpenBLAS"
    kernel: str | None = None  # that a BLAS chose for this CPU: "Haswell"
    threads: int | None = None  # by its own getter, when everything was built
    threads_getter: str | None = None


class CompileCache(Model):
    """The folder in which a framework, or a step of one's own, keeps what it compiles, and a plug-in what it
    chose by trial. `none`: it has no use for one."""

    state: Literal["warm", "cold", "none"]
    path: str | None = None


class Comparison(Model):
    """One tensor of a proof against the judge."""

    tensor: str
    measure: Literal["relative", "relative_l2"]
    error: float | None  # None: not finite
    tolerance: float
    passed: bool


class Parity(Model):
    """Whether the backend computes the network, by the proof launch."""

    status: Literal["passed", "failed", "unproven"]
    judge: str | None = None
    max_error: float | None = None
    tensor: str | None = None  # the tensor of max_error, or the first that failed
    reason: str | None = None  # in words, when failed or unproven
    notes: list[str] = Field(default_factory=list)  # "ties", "reduced"; once "flips"
    turned: list[str] = Field(default_factory=list)  # each decision that rounding turned, with its margin
    comparisons: list[Comparison] = Field(default_factory=list)
    losses: list[float] = Field(default_factory=list)  # of the first steps on the workload's own batches
    deterministic: bool | None = None  # five steps taken twice gave the same bits; None: nobody looked

    @model_validator(mode="before")
    @classmethod
    def _is_no_better_than_its_parts(cls, data: Any) -> Any:
        """Whoever asks for the status must hear what the comparisons say. Those beyond their tolerance are
        allowed in records of versions that noted a turned decision and did not yet show each."""
        if not isinstance(data, dict) or data.get("status") != "passed":
            return data
        if data.get("notes") and not data.get("turned"):
            return data
        beyond = [
            name for name, passed in map(_name_and_passed, _items(data.get("comparisons"))) if not passed
        ]
        if not beyond:
            return data
        reason = f"{beyond[0]} is beyond its tolerance, though the record says that the proof passed"
        return {**data, "status": "failed", "tensor": beyond[0], "reason": reason}


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _name_and_passed(one: Any) -> tuple[str, bool]:
    """Of a comparison, or of what should become one."""
    if isinstance(one, Comparison):
        return one.tensor, one.passed
    return (str(one.get("tensor")), one.get("passed") is not False) if isinstance(one, dict) else ("", True)


class ProfiledLayer(Model):
    """A layer and what was done for it; its times are a row of layers.bin."""

    node: str
    direction: Direction


# Of memory: refused to the contender's allocator; the kernel killed it, because the machine or a control
# group had no more; the supervisor, who watched, ended it.
Cause = Literal["refused", "kernel", "cgroup", "watchdog"]


class StuckThread(Model):
    """Where a thread stood, by the kernel. None, []: it does not say."""

    tid: int
    name: str
    state: str  # R runs, S sleeps, D waits for a device, T is stopped
    waits_in: str | None = None  # function of the kernel (wchan)
    system_call: str | None = None
    kernel_stack: list[str] = Field(default_factory=list)  # innermost first; for root alone


class Ending(Model):
    """What shows how a launch ended that is not ok."""

    cause: Cause | None = None  # of `oom`, and of `capped` by memory
    signal: str | None = None  # SIGSEGV
    exit_code: int | None = None
    held_bytes: int | None = None  # as the watchdog, or the control group, saw it
    caps: str | None = None  # in force, with who kept them
    boundary: str | None = None  # the last one that was reached: a phase, a step, an evaluation
    threads: list[StuckThread] = Field(default_factory=list)  # of a hang
    stack: list[str] = Field(default_factory=list)  # as it, or the runtime of its language, wrote it
    last_lines: list[str] = Field(default_factory=list)  # of standard error


class FileMark(Model):
    """A file beside a record, as it was written."""

    bytes: int
    sha256: str


class KeptFrom(Model):
    """Where a proof was made that was not made anew."""

    run: str  # id of the run or race
    case: str  # that was proven; it may differ in what cannot change what is computed


class LaunchRecord(Model):
    """One launch. Its arrays lie beside it: stamps.bin and losses.bin."""

    schema_version: Literal[1] = 1
    id: str
    case: str
    purpose: Purpose
    seed: int
    block: int
    position: int
    outcome: Outcome
    reason: str | None = None  # in words, unless ok
    stop_reason: str | None = None
    started_at: str
    duration_s: float
    command: list[str] = Field(default_factory=list)
    backend: dict[str, Any] = Field(default_factory=dict)
    facts: dict[str, str] = Field(default_factory=dict)  # what it says about what it built
    phases: list[Phase] = Field(default_factory=list)
    settings: list[Setting] = Field(default_factory=list)
    segments: list[Segment] = Field(default_factory=list)
    heat: int | None = None  # in which it took turns; None: it was alone, or older than heats
    heat_size: int | None = None  # launches in that heat; None: as `heat`, or older than this field
    waited_ns: int = 0  # behind its first step, stopped while others of its heat started
    turns: list[Turn] = Field(default_factory=list)  # one for each segment of kind `turn`
    passes: Passes | None = None  # of a timed launch; None: others, and records older than this field
    time_steps: TimeSteps | None = None  # of a timed launch whose network reads lengths
    # Parameters and states with some, behind the last timed step; None: nobody looked.
    subnormals: list[Subnormals] | None = None
    # Of a learning launch, before its first step; None: of others, and in records older than this field.
    untrained: Evaluation | None = None
    evaluations: list[Evaluation] = Field(default_factory=list)
    memory: Memory = Field(default_factory=Memory)
    threads: list[Thread] = Field(default_factory=list)
    libraries: list[Library] = Field(default_factory=list)
    ending: Ending | None = (
        None  # of a launch that is not ok; None: others, and records older than this field
    )
    parity: Parity | None = None  # of a proof
    kept_from: KeptFrom | None = None  # of a proof of an earlier run; None: it was made in this one
    end: Parity | None = None  # of a timed launch: the steps behind its timed part, judged
    profiled_steps: int = 0  # columns of layers.bin
    profiled_layers: list[ProfiledLayer] = Field(default_factory=list)  # rows of layers.bin
    witnesses: dict[str, float | None] = Field(default_factory=dict)
    counters: list[Counter] = Field(default_factory=list)  # []: nobody counted, or an older record
    others: dict[str, float] = Field(default_factory=dict)  # CPUs that other programs used, by name
    compile_cache: CompileCache | None = None  # None: a record older than this field
    first_call_ns: int | None = None  # of a proof: its first command that computes, compiling included
    at_once: int = 1  # contenders that could run while this one did: its phases took longer for it
    environment: dict[str, str] = Field(default_factory=dict)
    dropped_environment: list[str] = Field(default_factory=list)
    files: dict[str, FileMark] = Field(default_factory=dict)  # beside it; {}: a record older than this field
    stdout: str = ""
    stderr: str = ""
    warnings: list[str] = Field(default_factory=list)

    def __repr__(self) -> str:
        steps = sum(segment.steps for segment in self.segments)
        return (
            f"LaunchRecord({self.purpose} {self.block + 1} of '{self.case}', {self.outcome}, {steps} steps)"
        )

    @model_validator(mode="before")
    @classmethod
    def _older_place(cls, value: Any) -> Any:
        """Version 0.1 wrote for a time what went on behind a segment into its turn."""
        turns = value.get("turns") or [] if isinstance(value, dict) else []
        if not any(isinstance(turn, dict) and "behind_ns" in turn for turn in turns):
            return value
        behind = iter(turn.get("behind_ns", 0) for turn in turns)
        segments = [
            {**one, "behind_ns": next(behind, 0)} if one["kind"] == "turn" else one
            for one in value["segments"]
        ]
        turns = [{key: one for key, one in turn.items() if key != "behind_ns"} for turn in turns]
        return {**value, "turns": turns, "segments": segments}

    def samples_per_step(self, batch_size: int | None) -> int | None:
        """The case's batch size; of a callable that was given none, what its step says of itself."""
        return batch_size if batch_size is not None else self.backend.get("samples")


class LayerWork(Model):
    """What a step costs a node at least. Keys of the tables: forward, backward_data, backward_weights."""

    name: str
    kind: str
    parameters: int  # trained numbers
    multiply_accumulates: dict[str, int]  # on the whole batch
    bytes: dict[str, int]  # each tensor that a pass reads or writes, once


class CaseRecord(Model):
    """A case as it was asked. `axes` always has backend, network, threads, task, device, dtype, semantics."""

    id: str
    axes: dict[str, Any]
    backend: str
    network: str
    dataset: str
    batch_size: int | None  # None: a callable that was given none
    optimizer: dict[str, Any]
    task: str
    settings: dict[str, str]
    buckets: int = 1  # groups of sequences of like length; also of records older than this field
    training: str | None = None  # the same for cases of which one learns for all; None: each for itself
    proof: str | None = None  # the same for cases of which one is proven for all; None: each for itself
    multiply_accumulates: int | None = None  # of one step of the task, whole batch
    parameters: int | None = None
    # What a step needs on paper: weights, gradients, states, activations. None: nobody can say, or an older
    # record.
    least_bytes: dict[str, int] | None = None
    layers: list[LayerWork] = Field(default_factory=list)  # the nodes of the network, in order
    unavailable: str | None = None  # why this case could not be launched at all
    called: str | None = None  # what tables call the backend; None: `backend`

    @property
    def on_paper_bytes(self) -> int | None:
        """All of `least_bytes`."""
        return sum(self.least_bytes.values()) if self.least_bytes else None

    @property
    def named_buckets(self) -> int | None:
        """None: there is no need to name them."""
        return self.buckets if self.buckets > 1 else None

    @property
    def who(self) -> str:
        """What tables call the backend."""
        return self.called or self.backend

    def __repr__(self) -> str:
        told = {"network": self.network, "dataset": self.dataset, **self.settings}
        words = " ".join(f"{key}={value}" for key, value in told.items() if value != "none")
        return f"CaseRecord('{self.id}', {self.who} {words})"


class ExperimentRecord(Model):
    """What was asked, where it ran, and what the instrument itself costs."""

    schema_version: Literal[1] = 1
    id: str
    name: str
    question: str | None = None
    seed: int
    created_at: str
    timetrial_version: str
    again: str  # the command that runs it again
    spec: dict[str, Any]  # as asked, after overrides
    cases: list[CaseRecord]
    reference: dict[str, Any] | None = None
    launches: int  # asked, per case; at the least, where `half_width` was asked for
    half_width: float | None = None  # a fraction, of the median ratio: until then launches were added
    learning_seeds: int
    profiles: int = 0  # profile launches asked, per case
    resource_launches: int = 0  # asked, per case
    workloads: list[dict[str, Any]] = Field(default_factory=list)  # datasets: recorded splits and hashes
    machine: dict[str, Any] = Field(default_factory=dict)
    peak_flops: dict[str, float] = Field(default_factory=dict)  # measured f32 peak, by number of threads
    # Of a profile, by number of threads: bytes a second, measured over arrays that no cache holds, and over
    # arrays of half the second cache.
    memory_bandwidth: dict[str, float] = Field(default_factory=dict)
    cache_bandwidth: dict[str, float] = Field(default_factory=dict)
    harness: dict[str, float] = Field(default_factory=dict)  # the instrument's own costs
    warnings: list[str] = Field(default_factory=list)

    def __repr__(self) -> str:
        return f"ExperimentRecord('{self.id}', {self.name} of {self.created_at}, {len(self.cases)} cases)"
