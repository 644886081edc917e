"""What a launch has of its living contender: commands and answers, segments, passes, what is seen of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from timetrial.agreement.passes import PassCheck, can_reset, pass_steps
from timetrial.cases.keys import is_callable_word
from timetrial.launch.contact import LaunchContact
from timetrial.launch.counted_steps import CountedSteps
from timetrial.launch.plan import LaunchPlan, Limits
from timetrial.launch.segments import SampleFiles, SegmentRunner
from timetrial.observing.observe import Watch
from timetrial.processes.contender_process import ContenderProcess
from timetrial.processes.events import AnswerType, Description, Done
from timetrial.questions.sequence import FIRST_CALLS
from timetrial.records.model import SegmentKind


def patience_s(limits: Limits) -> float:
    """How long to wait for what may compile first: every command of a proof, and the first step."""
    return max(limits.start_timeout_s, limits.progress_timeout_s)


class Channel:
    """Both ways, typed: a command and the event that answers it."""

    def __init__(
        self,
        plan: LaunchPlan,
        process: ContenderProcess,
        backend: Description,
        runner: SegmentRunner,
        watch: Watch,
        files: SampleFiles,
        cancelled: Callable[[], bool],
        counted: Callable[[], CountedSteps],
    ):
        self.plan = plan
        self.process = process
        self.backend = backend
        self.runner = runner
        self.watch = watch
        self.files = files
        self.first_call_ns: int | None = None  # of a proof, which may compile
        self._cancelled = cancelled
        self._counted = counted

    @property
    def unprovable(self) -> bool:
        """It computes no network that a judge could compute too."""
        return "unprovable" in self.backend.flags

    @property
    def is_own_step(self) -> bool:
        """It is a step of the user's own, which shows no tensors."""
        return self.unprovable and is_callable_word(self.plan.case.backend)

    def ask(self, command: str, answer: type[AnswerType]) -> AnswerType:
        """LaunchError: it failed, answered otherwise, or not in time."""
        is_proof, limits = self.plan.purpose == "proof", self.plan.measure.limits
        began, verb = time.monotonic_ns(), command.split()[0]
        self.process.send(command, answer)
        # What shows layers may be compiled when it is asked for first, in a timed launch behind what was
        # timed.
        is_patient = is_proof or verb == "show"
        limit_s = patience_s(limits) if is_patient else limits.progress_timeout_s
        said = self.process.wait(answer, f"'{verb}'", limit_s, cancelled=self._cancelled)
        if is_proof and self.first_call_ns is None and verb in FIRST_CALLS:
            self.first_call_ns = time.monotonic_ns() - began
        return said

    def contact(self, kind: SegmentKind) -> LaunchContact:
        """For whoever looks at tensors; steps between the looks are segments of that kind."""
        return LaunchContact(self.ask, self.runner, self.files, self.plan, kind, self._counted())

    # Passes: the same steps again and again, where the contender can be reset -------------------------

    def begin_passes(self) -> None:
        """From the first step on."""
        if self.plan.measure.passes and can_reset(self.backend.flags):
            prepared = self.plan.prepared
            steps = pass_steps(prepared.job["optimizer"], prepared.steps_per_epoch)
            self.ask(f"passes {steps}", Done)
            self.runner.passes = PassCheck(steps, proven=not self.unprovable)

    def rewind(self) -> None:
        """To the first step of a pass."""
        if self.runner.passes:
            self.files.first_losses_end()  # the proof's went on
            self.ask("reset", Done)
            self.runner.passes.restarted()

    def suspend_passes(self) -> None:
        """What comes now finds the contender where the last step left it."""
        if self.runner.passes:
            self.ask("passes 0", Done)
            self.runner.passes.suspended = True

    def resume_passes(self) -> None:
        """From the first step of a pass."""
        if self.runner.passes:
            self.ask(f"passes {self.runner.passes.steps}", Done)
            self.rewind()
            self.runner.passes.suspended = False
