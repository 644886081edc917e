"""One launch from beginning to end: whatever happens to the contender, a record is what comes out."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from timetrial.caps.caps import caps_of
from timetrial.cases.case import Case
from timetrial.cases.environment import variables_of
from timetrial.contenders.compile_cache import as_said, compiled, forget_compiled, starts_alone
from timetrial.contenders.registry import Contender, resolve
from timetrial.contenders.settings import affinity_of, pins_of, setting_environment
from timetrial.control import counting
from timetrial.control.arithmetic import Proven
from timetrial.control.huge_pages import refused
from timetrial.control.judging import mismatch, of_a_failure
from timetrial.control.niceness import nice_of
from timetrial.control.sampling import hz_of
from timetrial.errors import Unavailable
from timetrial.heats.heat import Seat
from timetrial.launch.channel import Channel, patience_s
from timetrial.launch.counted_steps import CountedSteps
from timetrial.launch.explained import in_segment, with_libraries
from timetrial.launch.found import Found
from timetrial.launch.gate import Gate
from timetrial.launch.job import make_job, write_job
from timetrial.launch.judged_settings import Said, judged_settings
from timetrial.launch.plan import LaunchPlan
from timetrial.launch.purposes import Proving, purpose_of
from timetrial.launch.segments import SampleFiles, SegmentRunner
from timetrial.launch.starting import phases, recorder_file
from timetrial.observing.observe import Watch
from timetrial.processes.contender_process import Command, ContenderProcess
from timetrial.processes.environment import build_environment
from timetrial.processes.events import Ready
from timetrial.processes.launch_folder import make_folder, remove_own_folders, write_record, written_to_home
from timetrial.processes.left import remove
from timetrial.processes.orphans import subreaper
from timetrial.processes.outcome import LaunchError
from timetrial.processes.own_memory import give_back_freed
from timetrial.questions.sequence import Proof
from timetrial.records.model import LaunchRecord
from timetrial.records.same_libraries import other_libraries
from timetrial.records.samples import sample_marks


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
    launch = Launch(plan, cancel, seat, alive)
    try:
        record = launch.run()
    finally:
        launch.forget()
        remove_own_folders(plan.folder)
    return write_record(plan.folder, record)


class Launch:
    """A contender's life, from the job to its last look, with the judging behind it."""

    def __init__(
        self,
        plan: LaunchPlan,
        cancel: threading.Event | None,
        seat: Seat | None = None,
        alive: threading.Semaphore | None = None,
        gate: Gate | None = None,
    ):
        self.plan = plan
        self.cancel = cancel
        self.seat = seat
        self.alive = alive
        self.gate = gate or Gate(plan, self._cancelled)
        self.found = Found()
        self.proof: Proof | None = None
        self.cached: tuple[Case, Mapping[str, Any]] | None = None  # whose compile cache it gets

    def run(self) -> LaunchRecord:
        """Prepares, runs, judges; never raises for what the contender did."""
        found = self.found
        try:
            contender = self.plan.contender or resolve(self.plan.case)
            self._run_contender(contender)
            self._judge_settings(contender)
            if self.plan.purpose == "proof":
                self._judge_proof(contender)
            elif found.outcome == "ok":
                self._judge_end()
        except LaunchError as failure:
            found.fail(failure)
        except Unavailable as error:
            found.fail(LaunchError("unavailable", str(error)))
        if self.plan.purpose == "proof" and found.outcome != "ok" and self.cached is not None:
            forget_compiled(*self.cached, self.plan.contender or resolve(self.plan.case))
        found.warnings += written_to_home(self.plan.folder / "home")
        return self._held_against_kept(found.record(self.plan))

    def _held_against_kept(self, record: LaunchRecord) -> LaunchRecord:
        """A proof of another day says nothing of library files that came since."""
        kept = self.plan.kept
        if kept is None or record.outcome not in ("ok", "wrong", "nan"):
            return record
        words = record.reason
        if record.outcome == "ok":
            words = other_libraries(record.libraries, kept.libraries, more=not kept.same_settings)
        if words is None:
            return record
        cure = "--prove-again (prove_again=True in Python) or TIMETRIAL_KEEP_PROOFS=no"
        reason = f"{words}. Its proof was kept of an earlier run; prove it anew, with {cure}"
        outcome = "wrong" if record.outcome == "ok" else record.outcome
        return record.model_copy(update={"outcome": outcome, "reason": reason})

    def forget(self) -> None:
        """Dumps are mapped: their descriptors do not wait for the garbage collector. What judging took is
        there for the next contender."""
        self.proof = None
        self.gate.forget()
        give_back_freed()

    @property
    def _starts_on(self) -> frozenset[int] | None:
        """Its processors at first; in a heat perhaps others than those on which it rides (turns.py)."""
        elsewhere = self.seat.starts_on if self.seat is not None else None
        return elsewhere or self.plan.processors

    def _cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    # The contender's life -----------------------------------------------------------------------------

    def _run_contender(self, contender: Contender) -> None:
        plan = self.plan
        self.found.libraries = contender.libraries
        if "unprovable" not in contender.flags:
            self.gate.open()
        plan = replace(plan, prepared=self.gate.prepared)
        job = make_job(plan, contender)
        write_job(plan, job)
        makes = self.cached is None and plan.purpose == "proof"
        self.cached = self.cached or (plan.case, job)
        scratch = plan.folder.resolve() / "tmp"
        with (
            self.alive or contextlib.nullcontext(),
            compiled(
                *self.cached,
                contender,
                scratch / "cache",
                makes=makes,
                proves=plan.purpose == "proof",
                alone=starts_alone(plan.purpose, plan.at_once),
            ) as cache,
        ):
            if self._cancelled():
                raise KeyboardInterrupt
            self.found.cache = cache.record
            self._start(contender, cache.folder, scratch)
            cache.keep = True

    def _start(self, contender: Contender, cache: Path | None, scratch: Path) -> None:
        plan, found = self.plan, self.found
        variables = setting_environment(plan.case, contender, cache=cache, links=scratch / "libraries")
        asked = {**plan.environment, **variables_of(plan.case.settings)}
        found.environment = build_environment(plan.folder.resolve(), settings=variables, asked=asked)
        command = Command(
            program=contender.program(plan.folder.resolve() / "job.json"),
            environment=found.environment.variables,
            affinity=affinity_of(plan.case, contender, self._starts_on),
            nice=nice_of(plan.case.settings),
            huge_pages=not refused(plan.case.settings),
            caps=caps_of(plan.case.settings),
            sample_hz=hz_of(plan.case.settings, plan.purpose),
            samples=plan.folder.resolve(),
        )
        found.command = command.line()
        files = SampleFiles(plan.folder)
        try:
            self._live(contender, command, files)
        except LaunchError as failure:
            self._close(files)
            found.fail(failure)
            self._judge_settings(contender)
            raise
        except BaseException:  # interrupted, perhaps while it wrote: nothing is recorded
            files.abandon()
            raise
        self._close(files)

    def _live(self, contender: Contender, command: Command, files: SampleFiles) -> None:
        found, limits = self.found, self.plan.measure.limits
        with (
            subreaper(),
            recorder_file() as recorder,
            ContenderProcess(command, recorder, self.plan.folder) as process,
        ):
            found.in_force = process.in_force
            try:
                with process.looked_at():
                    self._talk(contender, self._open(contender, process, recorder, files))
            except LaunchError as failure:
                if found.runner:
                    found.runner.salvage()
                    failure = in_segment(failure, found.runner.steps, limits, patience_s(limits))
                raise (failure if found.ready else with_libraries(failure, found.libraries)) from None
            finally:
                found.began_at(process.started_ns)
                self._last_look()
                found.warnings += process.unsampled

    def _open(
        self, contender: Contender, process: ContenderProcess, recorder: int, files: SampleFiles
    ) -> Channel:
        """When it is ready."""
        plan, found, limits = self.plan, self.found, self.plan.measure.limits
        ready = found.ready = self._wait_for_start(process, limits.start_timeout_s)
        if process.pid is None:
            raise LaunchError("crash", "somebody ended the supervisor of the contender as it began")
        if found.cache is not None and contender.kind == "native":
            found.cache = as_said(found.cache, ready.settings)
        found.phases = phases(process.started_ns, ready.phases, time.monotonic_ns())
        version = contender.version
        found.watch = Watch(
            process.pid,
            version.helper_threads if version else (),
            dispatches=version is not None and version.dispatches,
            supervisor=process.supervisor,
            pins=pins_of(plan.case),
            counts=counting.are_wanted(plan.case.settings, plan.purpose),
            is_alone=self.seat is None and plan.at_once == 1,
        )
        found.watch.after_ready(found.phases)
        found.runner = SegmentRunner(
            process,
            recorder,
            files,
            timeout_s=patience_s(limits) if plan.purpose == "proof" else limits.progress_timeout_s,
            first_timeout_s=patience_s(limits),
            losses_matter=plan.case.task != "forward",
            cancelled=self._cancelled,
        )
        counted = functools.partial(CountedSteps, self.gate.prepared, ready)
        return Channel(
            plan, process, ready.backend, found.runner, found.watch, files, self._cancelled, counted
        )

    def _wait_for_start(self, process: ContenderProcess, limit_s: float) -> Ready:
        try:
            return process.wait(Ready, "start", limit_s, cancelled=self._cancelled)
        except LaunchError as failure:
            if failure.outcome != "hang":
                raise
            cure = f"start_timeout_s={2 * math.ceil(limit_s)} gives import and build more time"
            raise failure.saying(f"{failure.reason}; {cure}") from None

    def _talk(self, contender: Contender, channel: Channel) -> None:
        purpose = purpose_of(contender, self.gate, self.plan.purpose, self.seat)
        purpose.run(channel, self.found)
        self.proof = purpose.proof if isinstance(purpose, Proving) else None
        self._last_look()
        channel.process.finish(self.plan.measure.limits.progress_timeout_s)

    def _last_look(self) -> None:
        """While the contender is still there; after its death there is nothing to see."""
        found = self.found
        if found.watch is None:
            return
        with contextlib.suppress(OSError):
            found.watch.look_at_libraries(found.libraries)
            found.watch.end(found.runner.segments if found.runner else [])

    def _close(self, files: SampleFiles) -> None:
        try:
            files.close()
        except LaunchError:
            self.found.doubt_files()
            raise
        self.found.files |= files.marks() | sample_marks(self.plan.folder)

    # Judging, when the contender is gone --------------------------------------------------------------

    def _judge_proof(self, contender: Contender) -> None:
        found = self.found
        if self.proof is None:
            return
        parity = found.parity = self.gate.judge_proof(self.proof)
        if parity.status != "unproven" and found.outcome == "ok":
            parity = found.parity = self.gate.judge_stress(parity, lambda plan: self._stress(plan, contender))
        if parity.status == "failed" and found.outcome == "ok":
            found.fail(LaunchError("wrong", parity.reason or "parity failed"))

    def _stress(self, plan: LaunchPlan, contender: Contender) -> Proof:
        """Another launch of the same contender, for the proof's own recipe."""
        make_folder(plan.folder)
        launch = Launch(plan, self.cancel, alive=self.alive, gate=self.gate.for_stress(plan))
        launch.cached = self.cached  # much of what is compiled does not depend on the batch
        try:
            launch._run_contender(contender)
        finally:
            remove(plan.folder)
        proof = launch.proof
        launch.forget()
        assert proof is not None
        return proof

    def _judge_end(self) -> None:
        end = self.found.end = self.gate.judge_end()
        if end is not None and end.status == "failed":
            raise LaunchError("wrong", end.reason or "")

    def _judge_settings(self, contender: Contender) -> None:
        found = self.found
        proven = Proven(self.proof.deterministic) if self.proof else Proven.of(self.plan.proof)
        said = Said(found.ready, found.libraries, found.cache, proven, found.in_force)
        has_failed = found.outcome != "ok"
        found.settings, warnings = judged_settings(self.plan, contender, said, found.watch)
        if has_failed:
            found.settings = of_a_failure(found.settings, is_ready=found.ready is not None)
        found.warnings += warnings
        words = mismatch(found.settings, own_step=contender.kind == "callable")
        if words is not None and found.outcome == "ok":
            found.fail(LaunchError("mismatch", words))
