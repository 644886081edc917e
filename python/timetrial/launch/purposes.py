"""What a launch is for: one object for each purpose, which says what it asks of the contender.

The contender is never told: all of them use the same job, the same loop and the same commands. `run` is
called when it is ready, and fills in what was found; judging comes when the contender is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from timetrial.agreement.passes import PASSED_PURPOSES, check_resets
from timetrial.analysis.steps import PLAIN
from timetrial.cautions import Caution
from timetrial.contenders.registry import Contender
from timetrial.heats.heat import Seat
from timetrial.launch.alone import run_alone
from timetrial.launch.behind import look_behind_alone
from timetrial.launch.channel import Channel
from timetrial.launch.decisions import Stage, detailed_stage
from timetrial.launch.explained import ANEW
from timetrial.launch.found import Found
from timetrial.launch.gate import Gate
from timetrial.launch.learning import run_learning, run_resources
from timetrial.launch.profile import run_profile
from timetrial.launch.turns import await_others, run_turns
from timetrial.observing.accounts import Accounts, remembers
from timetrial.observing.subnormals import count_subnormals
from timetrial.processes.outcome import LaunchError
from timetrial.proof.parity import unproven
from timetrial.questions.sequence import Proof
from timetrial.records.store import LAYERS_FILE
from timetrial.statistics.growth import NEIGHBORS, does_nothing, lasting_change


class Purpose(Protocol):
    """One way of using a contender that is ready."""

    def run(self, channel: Channel, found: Found) -> None:
        """Everything that is asked of it."""


def purpose_of(contender: Contender, gate: Gate, purpose: str, seat: Seat | None) -> Purpose:
    """By the name that the plan has for it."""
    if purpose == "proof":
        return Proving(contender, gate)
    if purpose == "learning":
        return Timed(contender, gate, Learning())
    if purpose == "resources":
        return Timed(contender, gate, Using())
    if purpose == "profile":
        return Timed(contender, gate, Profiling())
    return Timed(contender, gate, Riding(gate, seat))


@dataclass
class Proving:
    """Shows every part of its work. `proof`: what it has shown, to be judged later."""

    contender: Contender
    gate: Gate
    proof: Proof | None = None

    def run(self, channel: Channel, found: Found) -> None:
        """The proof's sequence; of a contender that has no tensors at most a step, which may compile: what is
        kept of that is there for all timed launches alike."""
        if channel.is_own_step:
            channel.runner.run_stage(Stage("first", 1))
            channel.watch.after_first_step()
            found.first_call_ns = int(channel.runner.durations_ns("first")[0])
            found.parity = unproven("a step of one's own shows no tensors")
        elif channel.unprovable:
            found.parity = unproven("the backend computes no network")
        else:
            try:
                self.proof = self.gate.run_proof(channel.contact("train"))
            finally:
                found.first_call_ns = channel.first_call_ns
        channel.watch.read_float_modes()


@dataclass(frozen=True)
class Timed:
    """Whatever takes times or trains, `part`, and around it what all of these have: passes before it, and
    behind it subnormals, accounts, and the steps that are judged."""

    contender: Contender
    gate: Gate
    part: Purpose

    def run(self, channel: Channel, found: Found) -> None:
        """In this order."""
        if channel.plan.purpose in PASSED_PURPOSES:
            channel.begin_passes()
        self.part.run(channel, found)
        self._end_passes(channel, found)
        self._check_work(channel)
        self._check_accounts(channel, found)
        channel.watch.read_float_modes()
        self._check_end(channel, found)

    def _end_passes(self, channel: Channel, found: Found) -> None:
        channel.suspend_passes()
        runner = channel.runner
        if runner.passes:
            steps_ns = float(runner.plain_durations_ns().sum() + runner.durations_ns("turn").sum())
            said = check_resets(runner.resets_ns(), steps_ns, proven=not channel.unprovable)
            found.warnings += [words for words in (runner.passes.warning, said) if words]
        if channel.plan.case.task == "train" and not channel.unprovable:
            found.subnormals = count_subnormals(channel.contact("judged"))

    def _check_work(self, channel: Channel) -> None:
        """LaunchError where a step of the user's own does nothing any more: what it takes is no step time."""
        runner, files = channel.runner, channel.files
        if not channel.is_own_step:
            return
        change = lasting_change(runner.durations_ns("first", *PLAIN, "turn"))
        if change and does_nothing(change, files.first_losses, files.read_losses(files.losses - NEIGHBORS)):
            raise LaunchError(
                "wrong",
                f"from call {change.call} on it does nothing any more, after steps of "
                f"{change.before_ns / 1e6:.1g} ms: where its input was used up, {ANEW}",
            )

    def _check_accounts(self, channel: Channel, found: Found) -> None:
        """Whether stamps and CPU time go together, in launches that are timed."""
        seen, pid = channel.watch.first_and_last(), channel.process.pid
        if seen is None or pid is None or channel.plan.purpose not in PASSED_PURPOSES:
            return
        accounts = Accounts.between(pid, *seen, channel.runner.spans)
        accounts.check()
        computes = self.contender.kind != "native" or not channel.unprovable  # `null` may sleep if it likes
        found.warnings += [accounts.warning] if computes and accounts.warning else []

    def _check_end(self, channel: Channel, found: Found) -> None:
        """The first losses are the proof's, or those of the same steps when they are looked into; and so are
        the next steps."""
        if channel.unprovable:
            return
        losses = list(channel.files.first_losses)
        other = self.gate.other_losses(losses)
        channel.files.first_losses_end()
        _observe(self.gate, channel)
        runner = channel.runner
        if runner.passes and channel.plan.purpose in PASSED_PURPOSES:  # without, no step comes again
            first_pass_ns = runner.durations_ns("first", "warmup", "steady")[: runner.passes.steps]
            words = remembers(runner.segments, first_pass_ns, runner.durations_ns("steady", "turn"))
            found.warnings += [words] if words else []
        if other is not None:
            self.gate.look_again(channel.contact("judged"), losses, other)


@dataclass(frozen=True)
class Riding:
    """Steps against the clock: alone, or in the turns of a heat."""

    gate: Gate
    seat: Seat | None

    def run(self, channel: Channel, found: Found) -> None:
        """The first step, then as many as are wanted."""
        channel.runner.run_stage(Stage("first", 1))
        channel.watch.after_first_step()
        if channel.plan.case.task == "forward":
            self._observe_inference(channel)
        parts = _parts(channel)
        if self.seat is not None:
            found.waited_ns = await_others(self.seat, channel)
            found.warnings += run_turns(self.seat, channel, parts=parts, taken=found.turns)
            found.stop = "rounds"
            return
        if channel.plan.goes_on:
            found.warnings.append(Caution.GOES_ON.words(what=channel.plan.goes_on))
        found.stop = run_alone(channel.runner, channel.watch, channel.plan.measure)
        if look_behind_alone(channel):
            found.warnings.append(Caution.LEAVES_WORK.words())
        if parts is not None:
            channel.runner.run_stage(parts)

    def _observe_inference(self, channel: Channel) -> None:
        """Before the timed part too, because it leaves nothing behind that could be looked at."""
        channel.suspend_passes()
        if not channel.unprovable:
            _observe(self.gate, channel)
        channel.resume_passes()


def _observe(gate: Gate, channel: Channel) -> None:
    """Steps that will be judged: the rule may depend on how many there were since the last reset."""
    runner = channel.runner
    since = runner.passes.done if runner.passes else runner.steps
    gate.observe(channel.contact("judged"), runner.steps, since)


def _parts(channel: Channel) -> Stage | None:
    """Steps whose parts are timed, where the contender has parts."""
    plan = channel.plan
    has_parts = plan.case.task == "train" and bool(channel.backend.parts)
    wanted = plan.purpose == "speed" and plan.measure.detailed_steps > 0
    return detailed_stage(plan.measure) if wanted and has_parts else None


class Learning:
    """The recipe to its end."""

    def run(self, channel: Channel, found: Found) -> None:
        """Epochs, each with an evaluation."""
        run_learning(channel, found)
        measure = channel.plan.measure
        whole = measure.epochs * channel.plan.prepared.steps_per_epoch
        found.stop = "epochs" if (measure.most_learning_steps or whole) >= whole else "max_steps"


class Using:
    """Steps and an evaluation, looked at by the supervisor."""

    def run(self, channel: Channel, found: Found) -> None:
        """For some time."""
        run_resources(channel, found)
        found.stop = "time"


class Profiling:
    """Layer by layer."""

    def run(self, channel: Channel, found: Found) -> None:
        """Plain and profiled steps in turns."""
        if "profiles" not in channel.backend.flags:
            raise LaunchError("unavailable", f"{channel.backend.name} does not time its layers")
        found.layers = run_profile(channel)
        found.files[LAYERS_FILE] = found.layers.write(channel.plan.folder)
        found.stop = "time"
