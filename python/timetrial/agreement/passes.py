"""Passes: what is timed is the same few steps for every contender, again and again.

Left alone, a contender trains on for as long as it is timed: the fast one gets to steps that the slow one
never reaches. Their times differ: velocities of units that died decay as momentum^k, on MLP into subnormal
numbers after some 700 steps, and arithmetic on those takes up to a hundred cycles more. So every contender is
led back to its initial state, first batch included, after a pass of `pass_steps()` steps: outside the clock,
stamped, and with the first step behind it left out, as behind a pause.

The contender resets itself; that it did is judged here, by its stamps and by its losses: each pass has to
begin with the losses of the first one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetrial.analysis.steps import RESET_BOUNDARY, STEP_BOUNDARY
from timetrial.cautions import Caution
from timetrial.core.recorder import gave_no_loss
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import Passes, Purpose, Segment

# A launch is enough with 100 steps behind its warm-up at the earliest (statistics/stopping.py), so what
# converged has been once round a pass, however slow it is. Much shorter passes would spend the time of a slow
# framework on resets. With momentum 0.9 a velocity falls to 3e-5 of its size in 100 steps; subnormals begin
# behind some 700.
MOST_STEPS = 100
# By so many powers of ten a velocity may decay within a pass. f32 has 38 between 1 and its subnormals: one
# that began above 1e-18 stays a normal number.
DECADES = 20
PASSED_PURPOSES: tuple[Purpose, ...] = ("speed", "profile", "race")

LOSSES = 5  # at the beginning of each pass, that have to be those of the first pass
SAME_LOSS = 5e-6  # relative, of the first one: the same weights and batch, summed in another order
GROWTH = 4.0  # of that from step to step: what rounding did to one step, the next ones carry on


# The time of resets over that of the steps between them: above the first it is said, above the second the
# steps of something proven cannot be all that it does.
RESETS_SAID, RESETS_WRONG = 0.5, 5.0
RESETS_SAID_NS = 1_000_000  # of all together; steps of so little time are measured by nobody
WAIT_NS = 20_000_000  # of the longest reset, that may have been spent waiting for a processor


def pass_steps(optimizer: Mapping[str, Any], steps_per_epoch: int) -> int:
    """How many steps a pass has: no more than an epoch, and none in which a velocity gets subnormal.

    `steps_per_epoch` 0: not known (a step of the user's own).
    """
    steps = min(MOST_STEPS, steps_per_epoch or MOST_STEPS)
    for share in ("momentum", "beta1", "beta2", "rho"):
        kept = float(optimizer.get(share) or 0.0)
        if 0 < kept < 1:
            steps = min(steps, int(DECADES / -math.log10(kept)))
    return max(steps, 1)


def can_reset(flags: Collection[str]) -> bool:
    """Whether a contender with these flags has a state to be reset, and a way to do it."""
    return "reads_no_data" not in flags or "resets" in flags


class PassCheck:
    """Follows the passes of one contender, segment by segment."""

    def __init__(self, steps: int, *, proven: bool):
        self.steps = steps
        self.warning: str | None = None  # what is wrong with a contender that nobody proved
        self.suspended = False  # steps that are judged by themselves, on other batches, are of no pass
        self._proven = proven
        self._done = 0  # steps of the pass so far
        self._is_first = True
        self._first: list[float] = []

    @property
    def done(self) -> int:
        """Steps since the last reset."""
        return self._done

    def restarted(self) -> None:
        """The contender was reset by a command."""
        self._done, self._is_first = 0, False

    def skip(self, steps: int) -> None:
        """So many steps were taken that left no stamps; with resets among them."""
        self._done, self._is_first = (self._done + steps - 1) % self.steps + 1, False

    def add(self, stamps: NDArray[np.uint64], losses: NDArray[np.float64]) -> None:
        """One segment. LaunchError if there was no reset where one was due, or one where none was; or, of a
        contender that was proven, if a pass does not begin as the first one did."""
        if self.suspended:
            return
        numbers = stamps & np.uint64(0xFF)
        steps_before = np.cumsum(numbers == STEP_BOUNDARY)[numbers == RESET_BOUNDARY]
        for number, piece in enumerate(np.split(losses, steps_before)):
            if number > 0:
                self._reset()
            self._look(piece)
            self._done += len(piece)
            if self._done > self.steps:
                raise LaunchError(
                    "wrong", f"the contender took {self._done} steps without a reset, not {self.steps}"
                )

    def _reset(self) -> None:
        if self._done != self.steps:
            words = f"the contender was reset after {self._done} steps of a pass, not {self.steps}"
            raise LaunchError("wrong", words)
        self._done, self._is_first = 0, False

    def _look(self, losses: NDArray[np.float64]) -> None:
        head = losses[: max(0, LOSSES - self._done)]
        if self._is_first:
            self._first += [float(loss) for loss in np.where(gave_no_loss(head), np.nan, head)]
            return
        for step, loss in enumerate(head, start=self._done):
            first = self._first[step] if step < len(self._first) else math.nan
            if math.isfinite(first) and not _is_same(float(loss), first, SAME_LOSS * GROWTH**step):
                self._differs(step, float(loss), first)

    def _differs(self, step: int, loss: float, first: float) -> None:
        words = Caution.RESET_DIFFERS.words(step=step + 1, loss=f"{loss:.9g}", first=f"{first:.9g}")
        if self._proven:
            raise LaunchError("wrong", words)
        self.warning = self.warning or words


def _is_same(loss: float, first: float, tolerance: float) -> bool:
    return abs(loss - first) <= tolerance * max(abs(first), 1e-30)


def passes_record(check: PassCheck | None, segments: Collection[Segment]) -> Passes:
    """What the record says; `check` None: the contender cannot be reset."""
    return Passes(
        steps=check.steps if check else None,
        resets=sum(one.resets for one in segments),
        reset_ns=sum(one.reset_ns for one in segments),
    )


def check_resets(resets_ns: NDArray[np.int64], steps_ns: float, *, proven: bool) -> str | None:
    """Resets are not timed, so nothing but a reset belongs there. What to warn of, if anything; LaunchError
    where a contender that was proven takes several times as long for them as for all its steps."""
    reset_ns = float(resets_ns.sum() - min(resets_ns.max(initial=0), WAIT_NS))
    if reset_ns < RESETS_SAID_NS:
        return None
    share = reset_ns / steps_ns if steps_ns > 0 else 0.0
    if share <= RESETS_SAID:
        return None
    words = Caution.RESET_WORKS.words(resets_ms=f"{reset_ns / 1e6:.3g}", steps_ms=f"{steps_ns / 1e6:.3g}")
    if proven and share > RESETS_WRONG:
        raise LaunchError("wrong", words)
    return words
