"""One launch from beginning to end: whatever happens to the contender, a record is what comes out."""

from __future__ import annotations

import contextlib
import datetime
import math
import threading
import time
from dataclasses import replace
from pathlib import Path

from timetrial.cases.case import Case
from timetrial.contenders.compile_cache import COLD, compiled
from timetrial.contenders.compile_cache import SETTING as CACHE
from timetrial.contenders.registry import Contender, resolve
from timetrial.contenders.settings import affinity_of, setting_environment
from timetrial.errors import Unavailable
from timetrial.launch.accounts import Accounts, remembers
from timetrial.launch.alone import run_alone
from timetrial.launch.contact import LaunchContact
from timetrial.launch.decisions import Stage, detailed_stage
from timetrial.launch.explained import in_segment, with_libraries
from timetrial.launch.folder import make_folder, remove_own_folders, write_record, written_to_home
from timetrial.launch.gate import Gate
from timetrial.launch.heat import Seat
from timetrial.launch.job import make_job, write_job
from timetrial.launch.judged_settings import Said, judged_settings
from timetrial.launch.learning import run_learning
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.profile import LayerTimes, run_profile
from timetrial.launch.segments import SampleFiles, SegmentRunner
from timetrial.launch.starting import phases, recorder_file
from timetrial.launch.subnormals import count_subnormals
from timetrial.launch.turns import run_turns
from timetrial.observing.observe import Watch, describe_libraries
from timetrial.processes.contender_process import Command, ContenderProcess
from timetrial.processes.environment import Environment, build_environment
from timetrial.processes.events import AnswerType, Ask, Description, Done, LoadedLibrary, Ready
from timetrial.processes.left import remove
from timetrial.processes.orphans import subreaper
from timetrial.processes.outcome import LaunchError
from timetrial.processes.output import tail
from timetrial.proof.parity import compare_losses, unproven
from timetrial.proof.passes import (
    PASSED_PURPOSES,
    PassCheck,
    can_reset,
    check_resets,
    pass_steps,
    passes_record,
)
from timetrial.proof.sequence import FIRST_CALLS, Proof
from timetrial.records.model import (
    CompileCache,
    Evaluation,
    FileMark,
    LaunchRecord,
    Memory,
    Outcome,
    Parity,
    Phase,
    SegmentKind,
    Setting,
    Subnormals,
    Turn,
)
from timetrial.records.store import LAYERS_FILE
from timetrial.settings.judging import mismatch
from timetrial.settings.libraries import ChosenLibrary


def run_launch(
    plan: LaunchPlan,
    *,
    cancel: threading.Event | None = None,
    seat: Seat | None = None,
    alive: threading.Semaphore | None = None,
) -> LaunchRecord:
    """Runs the plan; a launch of a heat needs its seat. Leaves record.json, stamps.bin and losses.bin in the
    plan's folder, and nothing running. `alive` is held while the contender lives.

    Every failure of the contender is an outcome in the record. Raises MeasurementError when we could not
    measure or write, InputError for a plan that cannot be, KeyboardInterrupt on Ctrl-C or `cancel`: then
    nothing is recorded.
    """
    make_folder(plan.folder)
    launch = _Launch(plan, cancel, seat, alive)
    try:
        record = launch.run()
    finally:
        launch.forget()
        remove_own_folders(plan.folder)
    return write_record(plan.folder, record)


class _Launch:
    """The state of one launch while it runs, and the record that is made of it."""

    def __init__(
        self,
        plan: LaunchPlan,
        cancel: threading.Event | None,
        seat: Seat | None = None,
        alive: threading.Semaphore | None = None,
    ):
        self.plan = plan
        self.cancel = cancel
        self.seat = seat
        self.alive = alive
        self.outcome: Outcome = "ok"
        self.reason: str | None = None
        self.stop: str | None = None
        self.phases: list[Phase] = []
        self.ready: Ready | None = None
        self.settings: list[Setting] = []
        self.evaluations: list[Evaluation] = []
        self.turns: list[Turn] = []
        self.subnormals: list[Subnormals] | None = None
        self.parity: Parity | None = None
        self.end: Parity | None = None
        self.gate = Gate(plan, self._cancelled)
        self.proof: Proof | None = None
        self.layers = LayerTimes()
        self.files: dict[str, FileMark] = {}
        self.warnings: list[str] = []
        self.command: list[str] = []
        self.environment = Environment({}, [])
        self.libraries: tuple[ChosenLibrary, ...] = ()
        self.cache: CompileCache | None = None
        self.first_call_ns: int | None = None
        self.watch: Watch | None = None
        self.runner: SegmentRunner | None = None

    def run(self) -> LaunchRecord:
        """Prepares, runs, judges; never raises for what the contender did."""
        started = datetime.datetime.now(datetime.timezone.utc)
        began = time.monotonic()
        try:
            contender = self.plan.contender or resolve(self.plan.case)
            self._run_contender(contender)
            self._judge_settings(contender)
            if self.plan.purpose == "proof":
                self._prove(contender)
            elif self.outcome == "ok":
                self._judge_end()
        except LaunchError as failure:
            self._fail(failure)
        except Unavailable as error:
            self._fail(LaunchError("unavailable", str(error)))
        self.warnings += written_to_home(self.plan.folder / "home")
        plan = self.plan
        facts = self._facts()
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
            started_at=started.isoformat(timespec="milliseconds"),
            duration_s=time.monotonic() - began,
            command=self.command,
            backend=self.backend.model_dump(mode="json", exclude_unset=True) if self.backend else {},
            facts=facts,
            phases=self.phases,
            settings=self.settings,
            segments=self.runner.segments if self.runner else [],
            heat=plan.heat,
            heat_size=plan.heat_size,
            turns=self.turns,
            passes=passes_record(self.runner.passes, self.runner.segments)
            if self.runner and plan.purpose in PASSED_PURPOSES
            else None,
            subnormals=self.subnormals,
            evaluations=self.evaluations,
            memory=self.watch.memory if self.watch else Memory(),
            threads=self.watch.threads if self.watch else [],
            libraries=describe_libraries(self.watch.libraries, self.libraries, facts, self._loaded)
            if self.watch
            else [],
            parity=self.parity,
            end=self.end,
            profiled_steps=self.layers.steps,
            profiled_layers=self.layers.layers(),
            witnesses=self.watch.witnesses if self.watch else {},
            others=self.watch.others if self.watch else {},
            compile_cache=self.cache,
            first_call_ns=self.first_call_ns,
            at_once=plan.at_once,
            environment=self.environment.variables,
            dropped_environment=self.environment.dropped,
            files=self.files,
            stdout=tail(plan.folder / "stdout.txt"),
            stderr=tail(plan.folder / "stderr.txt"),
            warnings=self.warnings,
        )

    def forget(self) -> None:
        """Dumps are mapped: their descriptors do not wait for the garbage collector."""
        self.proof = None
        self.gate.forget()

    @property
    def backend(self) -> Description | None:
        """The contender in its own words; None: it was never ready."""
        return self.ready.backend if self.ready else None

    @property
    def _flags(self) -> tuple[str, ...]:
        return self.backend.flags if self.backend else ()

    @property
    def _loaded(self) -> tuple[LoadedLibrary, ...]:
        """What the contender says of its BLAS and OpenMP libraries."""
        return self.ready.libraries if self.ready else ()

    def _facts(self) -> dict[str, str]:
        """What the contender says, and of the BLAS that it was to use what that one says."""
        facts = dict(self.ready.facts) if self.ready else {}
        chosen = {one.path.resolve(): one.setting.removesuffix(".library") for one in self.libraries}
        for one in self._loaded:
            prefix = chosen.get(Path(one.path))
            for key, value in (("version", one.version), ("kernel", one.kernel)):
                if prefix is not None and value:
                    facts.setdefault(f"{prefix}.{key}", value)
        return facts

    def _fail(self, failure: LaunchError) -> None:
        self.outcome, self.reason = failure.outcome, failure.reason

    # The contender's life -----------------------------------------------------------------------------

    def _run_contender(self, contender: Contender) -> None:
        plan = self.plan
        self.libraries = contender.libraries
        if "unprovable" not in contender.flags:
            self.gate.open()
        plan = replace(plan, prepared=self.gate.prepared)
        job = make_job(plan, contender)
        write_job(plan, job)
        scratch = plan.folder.resolve() / "tmp"
        with (
            self.alive or contextlib.nullcontext(),
            compiled(self._cached_case, contender, job, plan.purpose, scratch / "cache") as cache,
        ):
            if self._cancelled():
                raise KeyboardInterrupt
            self.cache = cache.record
            self._start(contender, cache.folder, scratch)
            cache.keep = True

    def _start(self, contender: Contender, cache: Path | None, scratch: Path) -> None:
        plan = self.plan
        variables = setting_environment(plan.case, contender, cache=cache, links=scratch / "libraries")
        self.environment = build_environment(
            plan.folder.resolve(), settings=variables, asked=plan.environment
        )
        limits = plan.measure.limits
        command = Command(
            program=contender.program(plan.folder.resolve() / "job.json"),
            environment=self.environment.variables,
            affinity=affinity_of(plan.case, contender, plan.processors),
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
        )
        self.command = command.line()
        files = SampleFiles(plan.folder)
        try:
            self._live(contender, command, files)
        except LaunchError:
            self._close(files)
            raise
        except BaseException:  # interrupted, perhaps while it wrote: nothing is recorded
            files.abandon()
            raise
        self._close(files)

    def _live(self, contender: Contender, command: Command, files: SampleFiles) -> None:
        folder = self.plan.folder
        with (
            subreaper(),
            recorder_file() as recorder,
            ContenderProcess(command, recorder, folder) as process,
        ):
            try:
                with process.looked_at():
                    self._talk(contender, process, recorder, files)
            except LaunchError as failure:
                if self.runner:
                    self.runner.salvage()
                    limits = self.plan.measure.limits
                    failure = in_segment(failure, self.runner.steps, limits, self._patience_s)
                raise (failure if self.ready else with_libraries(failure, self.libraries)) from None
            finally:
                self._last_look()

    def _close(self, files: SampleFiles) -> None:
        try:
            files.close()
        except LaunchError:  # nothing of what lay beside the record is believed
            self.turns, self.evaluations, self.files, self.layers = [], [], {}, LayerTimes()
            if self.runner:
                self.runner.segments.clear()
            raise
        self.files |= files.marks()

    def _talk(
        self, contender: Contender, process: ContenderProcess, recorder: int, files: SampleFiles
    ) -> None:
        limits = self.plan.measure.limits
        self.ready = self._wait_for_start(process, limits.start_timeout_s)
        if process.pid is None:
            raise LaunchError("crash", "somebody ended the supervisor of the contender as it began")
        self.phases = phases(process.started_ns, self.ready.phases, time.monotonic_ns())
        version = contender.version
        self.watch = Watch(
            process.pid,
            version.helper_threads if version else (),
            dispatches=version is not None and version.dispatches,
            supervisor=process.supervisor,
        )
        self.watch.after_ready(next((p.rss_bytes for p in self.phases if p.name == "import"), None))
        self.runner = SegmentRunner(
            process,
            recorder,
            files,
            timeout_s=self._patience_s if self.plan.purpose == "proof" else limits.progress_timeout_s,
            first_timeout_s=self._patience_s,
            losses_matter=self.plan.case.task != "forward",
            cancelled=self._cancelled,
        )
        ask = self._asking(process)
        if self.plan.purpose in PASSED_PURPOSES:
            self._begin_passes(ask, self.runner)
        if self.plan.purpose == "proof":
            self._run_proof(contender, ask, files)
        elif self.plan.purpose == "learning":
            scored = not self._unprovable
            run_learning(
                ask,
                self.runner,
                self.watch,
                self.plan,
                scored=scored,
                taken=self.evaluations,
                files=self.files,
            )
            self.stop = "epochs"
        elif self.plan.purpose == "profile":
            self._run_profile(ask, files)
        else:
            self._run_timed(process, ask, files)
        self._end_passes(ask, self.runner, files)
        self._check_accounts(contender, process.pid, self.runner, self.watch)
        self.watch.read_float_modes()
        self._check_end(ask, files)
        self._last_look()
        process.finish(limits.progress_timeout_s)

    def _wait_for_start(self, process: ContenderProcess, limit_s: float) -> Ready:
        try:
            return process.wait(Ready, "start", limit_s, cancelled=self._cancelled)
        except LaunchError as failure:
            if failure.outcome != "hang":
                raise
            cure = f"start_timeout_s={2 * math.ceil(limit_s)} gives import and build more time"
            raise LaunchError("hang", f"{failure.reason}; {cure}") from None

    @property
    def _patience_s(self) -> float:
        """How long to wait for what may compile first: every command of a proof, and the first step."""
        limits = self.plan.measure.limits
        return max(limits.start_timeout_s, limits.progress_timeout_s)

    def _asking(self, process: ContenderProcess) -> Ask:
        is_proof = self.plan.purpose == "proof"
        limits = self.plan.measure.limits
        patience_s = self._patience_s if is_proof else limits.progress_timeout_s

        def ask(command: str, answer: type[AnswerType]) -> AnswerType:
            began = time.monotonic_ns()
            verb = command.split()[0]
            process.send(command, answer)
            said = process.wait(answer, f"'{verb}'", patience_s, cancelled=self._cancelled)
            if is_proof and self.first_call_ns is None and verb in FIRST_CALLS:
                self.first_call_ns = time.monotonic_ns() - began
            return said

        return ask

    def _cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    @property
    def _unprovable(self) -> bool:
        return "unprovable" in self._flags

    def _begin_passes(self, ask: Ask, runner: SegmentRunner) -> None:
        if self.plan.measure.passes and can_reset(self._flags):
            prepared = self.plan.prepared
            steps = pass_steps(prepared.job["optimizer"], prepared.steps_per_epoch)
            ask(f"passes {steps}", Done)
            runner.passes = PassCheck(steps, proven=not self._unprovable)

    def _rewind(self, ask: Ask) -> None:
        """To the first step of a pass, where there are passes."""
        if self.runner is not None and self.runner.passes:
            ask("reset", Done)
            self.runner.passes.restarted()

    def _suspend_passes(self, ask: Ask, runner: SegmentRunner) -> None:
        if runner.passes:
            ask("passes 0", Done)
            runner.passes.suspended = True

    def _end_passes(self, ask: Ask, runner: SegmentRunner, files: SampleFiles) -> None:
        """What comes now finds the contender where the last timed step left it."""
        self._suspend_passes(ask, runner)
        if runner.passes:
            steps_ns = float(runner.plain_durations_ns().sum() + runner.durations_ns("turn").sum())
            said = check_resets(runner.resets_ns(), steps_ns, proven=not self._unprovable)
            self.warnings += [words for words in (runner.passes.warning, said) if words]
        if self.plan.purpose != "proof" and self.plan.case.task == "train" and not self._unprovable:
            self.subnormals = count_subnormals(self._contact(ask, files, "judged"))

    def _check_accounts(self, contender: Contender, pid: int, runner: SegmentRunner, watch: Watch) -> None:
        """Whether stamps and CPU time go together, in launches that are timed."""
        seen = watch.first_and_last()
        if seen is None or self.plan.purpose not in PASSED_PURPOSES:
            return
        accounts = Accounts.between(pid, *seen, runner.spans)
        accounts.check()
        computes = contender.kind != "native" or not self._unprovable  # `null` may sleep if it likes
        self.warnings += [accounts.warning] if computes and accounts.warning else []

    def _run_timed(self, process: ContenderProcess, ask: Ask, files: SampleFiles) -> None:
        assert self.runner is not None
        assert self.watch is not None
        plan, runner, watch = self.plan, self.runner, self.watch
        runner.run_stage(Stage("first", 1))
        watch.after_first_step()
        if plan.case.task == "forward":
            self._observe_inference(ask, files, runner)
        if self.seat is not None:
            warning = run_turns(
                self.seat,
                process,
                runner,
                watch,
                plan.measure,
                parts=self._parts,
                rewind=lambda: self._rewind(ask),
                taken=self.turns,
            )
            self.stop = "rounds"
            self.warnings += [warning] if warning else []
        else:
            self.stop = run_alone(runner, watch, plan.measure)
            if self._parts is not None:
                runner.run_stage(self._parts)

    @property
    def _parts(self) -> Stage | None:
        """Steps whose parts are timed, where the contender has parts."""
        plan = self.plan
        has_parts = plan.case.task == "train" and self.backend is not None and bool(self.backend.parts)
        wanted = plan.purpose == "speed" and plan.measure.detailed_steps > 0
        return detailed_stage(plan.measure) if wanted and has_parts else None

    def _observe_inference(self, ask: Ask, files: SampleFiles, runner: SegmentRunner) -> None:
        """Before the timed part too, because it leaves nothing behind that could be looked at."""
        self._suspend_passes(ask, runner)
        self._observe(ask, files)
        if runner.passes:
            ask(f"passes {runner.passes.steps}", Done)
            self._rewind(ask)
            runner.passes.suspended = False

    def _run_profile(self, ask: Ask, files: SampleFiles) -> None:
        assert self.runner is not None
        assert self.watch is not None
        assert self.backend is not None
        if "profiles" not in self._flags:
            raise LaunchError("unavailable", f"{self.backend.name} does not time its layers")
        self.layers = run_profile(
            ask,
            self.runner,
            self.watch,
            files,
            self.plan.measure,
        )
        self.files[LAYERS_FILE] = self.layers.write(self.plan.folder)
        self.stop = "time"

    def _last_look(self) -> None:
        """While the contender is still there; after its death there is nothing to see."""
        if self.watch is None:
            return
        with contextlib.suppress(OSError):
            self.watch.look_at_libraries(self.libraries)
            self.watch.end(self.runner.segments if self.runner else [])

    # Judging ------------------------------------------------------------------------------------------

    def _contact(self, ask: Ask, files: SampleFiles, kind: SegmentKind) -> LaunchContact:
        assert self.runner is not None
        return LaunchContact(ask, self.runner, files, self.plan, kind)

    def _run_proof(self, contender: Contender, ask: Ask, files: SampleFiles) -> None:
        if self._unprovable:
            own = contender.kind == "callable"
            words = "a step of one's own shows no tensors" if own else "the backend computes no network"
            self.parity = unproven(words)
            return
        self.proof = self.gate.run_proof(self._contact(ask, files, "train"))

    def _prove(self, contender: Contender) -> None:
        if self.proof is None:
            return
        self.parity = self.gate.judge_proof(self.proof)
        if self.parity.status != "unproven" and self.outcome == "ok":
            self.parity = self.gate.judge_stress(self.parity, lambda plan: self._stress(plan, contender))
        if self.parity.status == "failed" and self.outcome == "ok":
            self._fail(LaunchError("wrong", self.parity.reason or "parity failed"))

    def _judge_end(self) -> None:
        self.end = self.gate.judge_end()
        if self.end is not None and self.end.status == "failed":
            raise LaunchError("wrong", f"behind the timed part: {self.end.reason}")

    def _stress(self, plan: LaunchPlan, contender: Contender) -> Proof:
        """Another launch of the same contender, for the proof's own recipe."""
        make_folder(plan.folder)
        launch = _Launch(plan, self.cancel, alive=self.alive)
        launch.gate = self.gate.for_stress(plan)
        try:
            launch._run_contender(contender)
        finally:
            remove(plan.folder)
        proof = launch.proof
        launch.forget()
        assert proof is not None
        return proof

    @property
    def _cached_case(self) -> Case:
        """What the proof's own recipe compiles nobody needs again."""
        case = self.plan.case
        return replace(case, settings={**case.settings, CACHE: COLD}) if self.gate.is_stress else case

    def _observe(self, ask: Ask, files: SampleFiles) -> None:
        """The steps that will be judged: behind the timed part, and before it where nothing changes."""
        if self._unprovable:
            return
        assert self.runner is not None
        self.gate.observe(self._contact(ask, files, "judged"), self.runner.steps)

    def _check_end(self, ask: Ask, files: SampleFiles) -> None:
        """Timed launches only: the first losses are the proof's, and what the next steps do can be judged."""
        if self.plan.purpose == "proof" or self._unprovable:
            return
        if self.plan.proof is not None:
            words = compare_losses(files.first_losses, self.plan.proof)
            if words is not None:
                raise LaunchError("wrong", words)
        files.first_losses_end()
        self._observe(ask, files)
        if self.plan.purpose in PASSED_PURPOSES and self.runner is not None:
            self._check_memory(self.runner)

    def _check_memory(self, runner: SegmentRunner) -> None:
        """Where there are no passes, no step comes again."""
        if runner.passes:
            first_pass_ns = runner.durations_ns("first", "warmup", "steady")[: runner.passes.steps]
            words = remembers(runner.segments, first_pass_ns, runner.durations_ns("steady", "turn"))
            self.warnings += [words] if words else []

    def _judge_settings(self, contender: Contender) -> None:
        said = Said(self.ready, self.libraries, self.cache)
        self.settings, warnings = judged_settings(self.plan, contender, said, self.watch)
        self.warnings += warnings
        words = mismatch(self.settings)
        if words is not None and self.outcome == "ok":
            self._fail(LaunchError("mismatch", words))
