"""What a launch has found so far: the record under construction, whatever becomes of the contender."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field
from pathlib import Path

from timetrial.agreement.passes import PASSED_PURPOSES, passes_record
from timetrial.caps.in_force import InForce
from timetrial.control.libraries import ChosenLibrary
from timetrial.endings.last_words import told
from timetrial.launch.counted_steps import way_of
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.profile import LayerTimes
from timetrial.launch.segments import SegmentRunner
from timetrial.lengths.timed import time_steps_record
from timetrial.observing.observe import Watch, describe_libraries
from timetrial.processes.environment import Environment
from timetrial.processes.events import LoadedLibrary, Ready
from timetrial.processes.outcome import LaunchError
from timetrial.processes.output import tail
from timetrial.records.model import (
    CompileCache,
    Ending,
    Evaluation,
    FileMark,
    LaunchRecord,
    Memory,
    Outcome,
    Parity,
    Phase,
    Setting,
    Subnormals,
    Turn,
)


@dataclass
class Found:
    """Fields are filled as they become known; record() takes what there is."""

    outcome: Outcome = "ok"
    reason: str | None = None
    ending: Ending | None = None
    stop: str | None = None
    phases: list[Phase] = field(default_factory=list)
    ready: Ready | None = None
    settings: list[Setting] = field(default_factory=list)
    untrained: Evaluation | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    waited_ns: int = 0
    turns: list[Turn] = field(default_factory=list)
    subnormals: list[Subnormals] | None = None
    parity: Parity | None = None
    end: Parity | None = None
    layers: LayerTimes = field(default_factory=LayerTimes)
    files: dict[str, FileMark] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    environment: Environment = field(default_factory=lambda: Environment({}, []))
    libraries: tuple[ChosenLibrary, ...] = ()
    cache: CompileCache | None = None
    first_call_ns: int | None = None
    watch: Watch | None = None
    in_force: InForce | None = None  # of the caps
    runner: SegmentRunner | None = None
    started: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(datetime.timezone.utc))
    began: float = field(default_factory=time.monotonic)

    def fail(self, failure: LaunchError) -> None:
        """The outcome from now on."""
        self.outcome, self.reason, self.ending = failure.outcome, failure.reason, failure.ending

    def began_at(self, ns: int) -> None:
        """That it was started is known even of one that never became ready."""
        if not self.phases and ns:
            self.phases = [Phase(name="exec", ns=ns)]

    def doubt_files(self) -> None:
        """Nothing of what lay beside the record is believed."""
        self.turns, self.evaluations, self.files, self.layers = [], [], {}, LayerTimes()
        self.untrained = None
        if self.runner:
            self.runner.segments.clear()

    @property
    def loaded(self) -> tuple[LoadedLibrary, ...]:
        """What the contender says of its BLAS and OpenMP libraries."""
        return self.ready.libraries if self.ready else ()

    def facts(self) -> dict[str, str]:
        """What the contender says, and of the BLAS that it was to use what that one says."""
        facts = dict(self.ready.facts) if self.ready else {}
        chosen = {one.path.resolve(): one.setting.removesuffix(".library") for one in self.libraries}
        for one in self.loaded:
            prefix = chosen.get(Path(one.path))
            for key, value in (("version", one.version), ("kernel", one.kernel)):
                if prefix is not None and value:
                    facts.setdefault(f"{prefix}.{key}", value)
        return facts

    def record(self, plan: LaunchPlan) -> LaunchRecord:
        """Of a launch that has ended."""
        facts, watch, runner = self.facts(), self.watch, self.runner
        stderr, steps = tail(plan.folder / "stderr.txt"), runner.steps if runner else 0
        ending = told(self.ending, self.phases, steps, self.evaluations, stderr)
        timed = runner if plan.purpose in PASSED_PURPOSES else None
        passes = passes_record(timed.passes, timed.segments) if timed else None
        return LaunchRecord(
            id=plan.id,
            case=plan.case.id,
            purpose=plan.purpose,
            seed=plan.seed,
            block=plan.block,
            position=plan.position,
            outcome=self.outcome,
            reason=self.reason,
            stop_reason=self.stop,
            started_at=self.started.isoformat(timespec="milliseconds"),
            duration_s=time.monotonic() - self.began,
            command=self.command,
            backend=self.ready.backend.model_dump(mode="json", exclude_unset=True) if self.ready else {},
            facts=facts,
            phases=self.phases,
            settings=self.settings,
            segments=runner.segments if runner else [],
            heat=plan.heat,
            heat_size=plan.heat_size,
            waited_ns=self.waited_ns,
            turns=self.turns,
            passes=passes,
            time_steps=time_steps_record(
                plan.prepared.durations, passes, runner.segments if runner else [], way_of(self.ready)
            ),
            subnormals=self.subnormals,
            untrained=self.untrained,
            evaluations=self.evaluations,
            memory=watch.memory if watch else Memory(),
            threads=watch.threads if watch else [],
            libraries=describe_libraries(watch.libraries, self.libraries, facts, self.loaded)
            if watch
            else [],
            ending=ending if self.outcome != "ok" else None,
            parity=self.parity,
            end=self.end,
            profiled_steps=self.layers.steps,
            profiled_layers=self.layers.layers(),
            witnesses=watch.witnesses if watch else {},
            counters=watch.counters if watch else [],
            others=watch.others if watch else {},
            compile_cache=self.cache,
            first_call_ns=self.first_call_ns,
            at_once=plan.at_once,
            environment=self.environment.variables,
            dropped_environment=self.environment.dropped,
            files=self.files,
            stdout=tail(plan.folder / "stdout.txt"),
            stderr=stderr,
            warnings=self.warnings,
        )
