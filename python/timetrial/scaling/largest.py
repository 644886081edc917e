"""The largest batch with which a contender stays within so much memory: predicted, searched and confirmed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.cases.cases import PlannedCase
from timetrial.cases.sizes import bytes_of
from timetrial.errors import InputError
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.validate import ReadyCase, validate
from timetrial.fitting.probes import Probes, check_precision, probe_each
from timetrial.records.files import near, write_once
from timetrial.report.columns import Grid
from timetrial.report.numbers import first_line, significant
from timetrial.statistics.bisection import boundary
from timetrial.statistics.lines import FEWEST_SIZES, Part, fit_line

PRECISION = 0.01
FINEST = 0.0001
FIRST_SIZES, GROWTH = 4, 2  # for the line: so many, each so many times the one before


@dataclass(frozen=True)
class LargestBatch:
    """Of one case."""

    axes: Mapping[str, Any]  # what tells the cases apart
    outcome: str  # `ok`: there is an answer; otherwise of the launch that gave none, or `unavailable`
    reason: str | None = None  # in words, unless ok
    batch_size: int | None = None  # with which a step stayed within the memory, twice
    held_bytes: int | None = None  # with it: the peak of private memory while steady
    beyond: int | None = None  # the next larger one that was tried; None: the data set has no more samples
    why_not: str | None = None  # what came of that one
    predicted: Part | None = None  # by the line through the first sizes; None: they do not make one
    launches: int = 0  # that the search took

    @property
    def words(self) -> str:
        """'eigen threads=1'."""
        return " ".join(
            str(value) if key == "backend" else f"{key}={value}" for key, value in self.axes.items()
        )


@dataclass(frozen=True)
class LargestBatches:
    """All cases, in the order in which they were asked for."""

    folder: Path  # that has the records of all launches
    memory_bytes: int  # what a contender may hold
    precision: float  # the largest batch and the next that was tried differ by so much (a fraction), or by 1
    batches: Sequence[LargestBatch] = field(default_factory=list)  # one for each case

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "memory_bytes": self.memory_bytes,
            "precision": self.precision,
            "batches": [dataclasses.asdict(one) for one in self.batches],
        }

    def table(self) -> RenderableType:
        """For rich."""
        titles = ("case", "largest batch", "holds", "predicted", "")
        rows = [
            [
                one.words,
                "-" if one.batch_size is None else f"{one.batch_size:,}",
                "-" if one.held_bytes is None else in_words(one.held_bytes),
                _predicted(one.predicted),
                _remark(one),
            ]
            for one in self.batches
        ]
        most = in_words(self.memory_bytes)
        words = f"  within {most} of private memory while steady, to {self.precision:.1%}"
        return Group(Grid(titles, rows), Text(words), Text(f"  records: {near(self.folder)}"))

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


def in_words(size: int) -> str:
    """'95.03 MB' (2^20 bytes): sizes that lie near each other are told apart."""
    scale, unit = (2**30, "GB") if size >= 2**30 else (2**20, "MB")
    return f"{significant(size / scale, 4)} {unit}"


def _remark(one: LargestBatch) -> str:
    return first_line(one.why_not) if one.outcome == "ok" else f"{one.outcome}: {first_line(one.reason)}"


def _predicted(part: Part | None) -> str:
    if part is None:
        return "-"
    high = "..." if math.isinf(part.high) else f"{part.high:,.0f}"
    return f"{part.estimate:,.0f} [{part.low:,.0f}, {high}]"


def largest_batch(
    memory: str | int,
    source: str | None = None,
    /,
    *,
    precision: float = PRECISION,
    results: str | Path = "results",
    quiet: bool = False,
    **keywords: Any,
) -> LargestBatches:
    """The largest batch with which each case holds at most so much private memory while steady:

        tt.largest_batch("2GB", network="lenet5", backend=["eigen", "pytorch"])

    The first sizes (batch_size, twice, four and eight times that) give a line, the line predicts, and a
    search of launches around what it predicts finds the batch, which another launch confirms. `precision`: by
    which share the batch and the next that was tried may differ. InputError: a case cannot be, or they span
    batch sizes.
    """
    experiment = Experiment.load(source, **keywords)
    return search(experiment, Path(results), bytes_of(memory), precision=precision, quiet=quiet)


def search(
    experiment: Experiment,
    results: Path,
    memory_bytes: int,
    *,
    precision: float = PRECISION,
    quiet: bool = False,
    engine: Engine | None = None,
) -> LargestBatches:
    """The same, of an experiment; its records are in a folder largest-... of `results`."""
    engine = engine or real_engine()
    ready = _checked(experiment, engine, memory_bytes, precision)

    def find(probes: Probes) -> LargestBatch:
        return _Search(probes, memory_bytes, precision).run()

    def keep(folder: Path, found: list[LargestBatch]) -> LargestBatches:
        whole = LargestBatches(folder, memory_bytes, precision, found)
        write_once(folder / "largest.json", json.dumps(whole.to_json(), indent=1).encode())
        return whole

    return probe_each("largest", experiment, ready, engine, results, find, keep, quiet=quiet)


def _checked(experiment: Experiment, engine: Engine, memory_bytes: int, precision: float) -> list[ReadyCase]:
    """All that can be known before anything starts."""
    check_precision(precision, FINEST, PRECISION)
    free = engine.free_bytes()
    if memory_bytes > free:
        raise InputError(f"memory={in_words(memory_bytes)}, and {in_words(free)} are free here: ask for less")
    for one in experiment.cases:
        if "batch_size" in one.case.axes:
            words = "name one, where the search begins, or none"
            raise InputError(f"the search is for the batch size, and the cases have several: {words}")
        if one.case.workload.batch_size is None:
            raise InputError(
                f"'{one.case.backend}' has a batch of its own making: name the network that it trains"
            )
    return validate(experiment.cases, engine)


@dataclass
class _Search:
    """Of one case."""

    probes: Probes
    memory_bytes: int
    precision: float
    held: dict[int, int] = field(default_factory=dict)  # by batch size, the most that a launch held
    failed: dict[int, tuple[str, str]] = field(default_factory=dict)  # by batch size, outcome and reason

    def run(self) -> LargestBatch:
        """The first sizes, the prediction, the search."""
        one, axes = self.probes.one, self.probes.axes
        if one.unavailable is not None:
            return LargestBatch(axes, "unavailable", one.unavailable)
        first = one.case.workload.batch_size or 1
        most = max(first, one.checked.samples if one.checked else first)
        for place in range(FIRST_SIZES):
            size = first * GROWTH**place
            if size > most or not self._does_fit(size):
                break
        predicted = self._predicted()
        guess = self._guess(first) if predicted is None else predicted.estimate
        found = boundary(
            self._does_fit, int(min(most, guess)), easiest=1, hardest=most, precision=self.precision
        )
        if found.does is None:
            outcome, reason = self.failed.get(1) or ("capped", self._why_not(1))
            words = f"not even a batch of 1: {reason}"
            return LargestBatch(axes, outcome, words, predicted=predicted, launches=self.probes.launches)
        return LargestBatch(
            axes,
            "ok",
            batch_size=found.does,
            held_bytes=self.held[found.does],
            beyond=found.fails,
            why_not="all samples of the data set" if found.fails is None else self._why_not(found.fails),
            predicted=predicted,
            launches=self.probes.launches,
        )

    def _predicted(self) -> Part | None:
        if len(self.held) < FEWEST_SIZES:
            return None
        line = fit_line(list(self.held), [float(value) for value in self.held.values()])
        return line.reaches(self.memory_bytes)

    def _guess(self, first: int) -> float:
        """From less than makes a line."""
        sizes = sorted(self.held)
        if not sizes:
            return first / GROWTH
        largest_held = self.held[sizes[-1]]
        grown = largest_held - self.held[sizes[0]]
        if grown <= 0:
            return sizes[-1] * self.memory_bytes / max(1, largest_held)
        each = grown / (sizes[-1] - sizes[0])
        return sizes[-1] + (self.memory_bytes - largest_held) / each

    def _why_not(self, size: int) -> str:
        if size in self.failed:
            outcome, reason = self.failed[size]
            return f"{size:,}: {outcome}: {reason}"
        return f"{size:,} holds {in_words(self.held[size])}"

    def _does_fit(self, size: int) -> bool:
        case = self.probes.one.case
        own = replace(case, workload=replace(case.workload, batch_size=size))
        [ready] = validate([PlannedCase(own)], self.probes.engine)
        if ready.unavailable is not None:
            self.failed[size] = ("unavailable", ready.unavailable)
            return False
        record = self.probes.launch(own, f"with a batch of {size:,}", ready)
        if record.outcome != "ok" or record.memory.held is None:
            self.failed[size] = (record.outcome, record.reason or "nobody could see what it holds")
            return False
        self.held[size] = max(record.memory.held, self.held.get(size, 0))
        return record.memory.held <= self.memory_bytes
