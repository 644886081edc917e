"""Runs segments and saves what they wrote: each window is drained before it is used again."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from timetrial.agreement.passes import PassCheck
from timetrial.analysis.steps import PLAIN, StampedSteps, may_count, stamped_steps
from timetrial.core.recorder import (
    FIRST_USER_BOUNDARY,
    gave_no_loss,
    stamp_boundaries,
    stamp_times_ns,
)
from timetrial.launch.decisions import Order, Progress, Stage, next_order
from timetrial.launch.windows import check_segment, read_recorder
from timetrial.observing.accounts import check_order
from timetrial.processes.contender_process import ContenderProcess
from timetrial.processes.events import SegmentDone
from timetrial.processes.outcome import LaunchError
from timetrial.records.files import explained
from timetrial.records.model import FileMark, Segment, SegmentKind
from timetrial.records.store import LOSSES_FILE, STAMPS_FILE

WINDOWS = 2
FIRST_LOSSES = 5  # compared with the proof
RECENT_LOSSES = 16
SAMPLE_FILES = (STAMPS_FILE, LOSSES_FILE)


@dataclass(frozen=True)
class Pending:
    """A segment that was ordered and has not been drained."""

    kind: SegmentKind
    window: int
    order: Order
    ordered_ns: int


class SampleFiles:
    """stamps.bin (u64, little-endian) and losses.bin (f64) of one launch."""

    def __init__(self, folder: Path):
        self.stamps = 0
        self.losses = 0
        self.first_losses: list[float] = []
        self._first_wanted = FIRST_LOSSES
        self._recent: NDArray[np.float64] = np.empty(0)
        self._folder = folder
        self._files: list[IO[bytes]] = []
        self._hashes = [hashlib.sha256() for _ in SAMPLE_FILES]
        with explained(folder):
            for name in SAMPLE_FILES:
                self._files.append((folder / name).open("ab"))

    def append(self, stamps: NDArray[np.uint64], losses: NDArray[np.float64]) -> None:
        """One drained window."""
        with explained(self._folder):
            for file, known, values in zip(self._files, self._hashes, (stamps, losses), strict=True):
                file.write(values.tobytes())
                known.update(values.tobytes())
        self.stamps += len(stamps)
        self.losses += len(losses)
        self._recent = np.concatenate([self._recent, losses[-RECENT_LOSSES:]])[-RECENT_LOSSES:]
        wanted = self._first_wanted - len(self.first_losses)
        self.first_losses += [float(loss) for loss in losses[:wanted]]

    def first_losses_end(self) -> None:
        """What is appended from here on is no longer compared with the proof."""
        self._first_wanted = len(self.first_losses)

    def read_losses(self, first: int) -> list[float]:
        """The losses from number `first` on, which must be among the most recent."""
        return [float(loss) for loss in self._recent[len(self._recent) - (self.losses - first) :]]

    def marks(self) -> dict[str, FileMark]:
        """What the record says of the files."""
        sizes = (8 * self.stamps, 8 * self.losses)
        return {
            name: FileMark(bytes=size, sha256=known.hexdigest())
            for name, size, known in zip(SAMPLE_FILES, sizes, self._hashes, strict=True)
        }

    def close(self) -> None:
        """Everything written is on the disk, or MeasurementError says why not. LaunchError: the contender has
        taken the files away, or written into them."""
        try:
            with explained(self._folder):
                for file in self._files:
                    file.flush()
                    os.fsync(file.fileno())
            ours = [
                self._is_ours(name, file, mark.bytes)
                for (name, mark), file in zip(self.marks().items(), self._files, strict=True)
            ]
        finally:
            self.abandon()
        if not all(ours):
            taken = " and ".join(name for name, one in zip(SAMPLE_FILES, ours, strict=True) if not one)
            raise LaunchError(
                "crash",
                f"{taken} of its launch went away, or changed, while it ran: a contender may write into its "
                "home and tmp folders only",
            )

    def abandon(self) -> None:
        """Closes them, whatever they hold."""
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()

    def _is_ours(self, name: str, file: IO[bytes], size: int) -> bool:
        own = os.fstat(file.fileno())
        if self._folder.is_symlink():
            return False
        try:
            there = os.stat(self._folder / name, follow_symlinks=False)
        except OSError:
            return False
        return (own.st_dev, own.st_ino, size) == (there.st_dev, there.st_ino, there.st_size)


class SegmentRunner:
    """Orders segments, waits for them, drains them. `segments` has all that left stamps."""

    def __init__(
        self,
        process: ContenderProcess,
        recorder_fd: int,
        files: SampleFiles,
        *,
        timeout_s: float,
        first_timeout_s: float,
        losses_matter: bool,
        cancelled: Callable[[], bool] | None,
    ):
        self.segments: list[Segment] = []
        self.passes: PassCheck | None = None
        self.spans: list[tuple[int, int]] = []  # first and last stamp of each segment
        self._stamped: list[StampedSteps] = []
        self._process = process
        self._fd = recorder_fd
        self._files = files
        self._timeout_s = timeout_s
        self._first_timeout_s = first_timeout_s  # the first step may compile
        self._losses_matter = losses_matter
        self._cancelled = cancelled
        self._pending: deque[Pending] = deque()
        self._next_window = 0
        self._last_ns = 0
        self._steps = 0

    def plain_durations_ns(self) -> NDArray[np.int64]:
        """Of the steps that may count for the step time of a speed launch (analysis/steps.py), in order."""
        durations, counting = self._plain()
        return durations[counting]

    def _plain(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """All steps between the first and those with parts, and which of them may count."""
        own = self._of(PLAIN)
        breaks = [one.first_in_segment | one.first_in_pass for one in own]
        return (
            np.concatenate([np.empty(0, np.int64), *(one.duration_ns for one in own)]),
            may_count(np.concatenate([np.empty(0, np.bool_), *breaks])),
        )

    @property
    def steps(self) -> int:
        """That were completed and saved so far, in all segments."""
        return self._steps

    def durations_ns(self, *kinds: SegmentKind) -> NDArray[np.int64]:
        """Of all steps in segments of these kinds so far, in order."""
        own = [one.duration_ns for one in self._of(kinds)]
        return np.concatenate([np.empty(0, np.int64), *own])

    def resets_ns(self) -> NDArray[np.int64]:
        """How long each reset took that was done between two steps of a segment."""
        return np.concatenate([np.empty(0, np.int64), *(one.reset_ns for one in self._stamped)])

    def _of(self, kinds: Collection[str]) -> list[StampedSteps]:
        pairs = zip(self.segments, self._stamped, strict=True)
        return [stamped for segment, stamped in pairs if segment.kind in kinds]

    def run_stage(self, stage: Stage) -> Progress:
        """All segments of a stage, one always queued ahead."""
        return self.run(lambda: stage.kind, partial(next_order, stage), parts=stage.parts)

    def run(
        self,
        kind: Callable[[], SegmentKind],
        order: Callable[[Progress], Order | None],
        *,
        parts: bool = False,
        progress: Progress | None = None,
        drained: Callable[[Progress], None] = lambda progress: None,
    ) -> Progress:
        """Segments as `order` says, one always queued ahead, until it has none; goes on from `progress`.
        `drained` is called after each, while the next one runs."""
        done = progress or Progress()
        while True:
            while len(self._pending) < WINDOWS:
                queued_steps = sum(pending.order.steps for pending in self._pending)
                queued_ns = sum(pending.order.max_ns for pending in self._pending)
                following = order(Progress(done.steps, done.ns, queued_steps, queued_ns))
                if following is None:
                    break
                self._send(kind(), following, parts=parts)
            if not self._pending:
                return done
            steps, ns = self._finish_one()
            done = Progress(done.steps + steps, done.ns + ns)
            drained(done)

    def mark_warmup(self, first: int) -> int:
        """Plain segments that end before the step that is number `first` of those that may count are
        `warmup`, the others `steady`. How many plain steps lie before it."""
        positions = np.flatnonzero(self._plain()[1])
        cut = int(positions[first]) if first < len(positions) else 0
        passed = 0
        for number, segment in enumerate(self.segments):
            if segment.kind in PLAIN:
                passed += segment.steps
                kind: SegmentKind = "warmup" if passed <= cut else "steady"
                self.segments[number] = segment.model_copy(update={"kind": kind})
        return cut

    def _send(self, kind: SegmentKind, order: Order, *, parts: bool) -> None:
        verb = "parts" if parts else "run"
        ordered_ns = time.monotonic_ns()
        self._process.send(f"{verb} {order.steps} {order.max_ns} {self._next_window}", SegmentDone)
        self._pending.append(Pending(kind, self._next_window, order, ordered_ns))
        self._next_window = (self._next_window + 1) % WINDOWS

    def _finish_one(self) -> tuple[int, int]:
        """Waits for the oldest segment; its steps and nanoseconds."""
        pending = self._pending[0]
        said = self._process.wait(
            SegmentDone,
            f"a segment ({pending.kind}) after {self._steps} steps",
            self._timeout_s if self._steps else self._first_timeout_s,
            progress=lambda: len(read_recorder(self._fd, pending.window)[0]),
            cancelled=self._cancelled,
        )
        answered_ns = time.monotonic_ns()
        stamps, losses = read_recorder(self._fd, pending.window)
        check_segment(said, pending.order, pending.window, stamps)
        self._pending.popleft()
        stamps, losses = stamps[: said.stamps], losses[: said.steps]
        # Stamps with boundaries of the step's own may have been given a time.
        own = stamps[stamp_boundaries(stamps) < FIRST_USER_BOUNDARY]
        check_order(stamp_times_ns(own), pending.ordered_ns, self._last_ns, answered_ns)
        steps = said.steps
        ns = self._keep(pending.kind, stamps, losses, said)
        if self.passes:
            self.passes.add(stamps, losses)
        bad = float(losses[-1]) if steps else 0.0
        if self._losses_matter and not math.isfinite(bad) and not gave_no_loss(losses)[-1]:
            raise LaunchError("nan", f"the loss is {bad} at step {self._steps}")
        if steps == 0:
            raise LaunchError("crash", f"a segment ({pending.kind}) ended without a step")
        return steps, ns

    def _keep(
        self,
        kind: SegmentKind,
        stamps: NDArray[np.uint64],
        losses: NDArray[np.float64],
        said: SegmentDone | None,
    ) -> int:
        """`said` None: it died before it could answer."""
        stamped = stamped_steps(stamps)
        self.segments.append(
            Segment(
                kind=kind,
                steps=len(losses),
                first_stamp=self._files.stamps,
                stamps=len(stamps),
                first_loss=self._files.losses,
                losses=len(losses),
                cpu_ns=said.cpu_ns if said else None,
                rss_bytes=said.rss_bytes if said else None,
                mapped_bytes=said.mapped_bytes if said else None,
                window_bytes=said.window_bytes if said else 0,
                sequence_steps=said.sequence_steps if said else None,
                resets=len(stamped.reset_ns),
                reset_ns=int(stamped.reset_ns.sum()),
            )
        )
        self._files.append(stamps, losses)
        self._steps += len(losses)
        self._stamped.append(stamped)
        times = stamp_times_ns(stamps)
        self.spans.append((int(times[0]), int(times[-1])))
        self._last_ns = int(times[-1])
        return int(times[-1] - times[0])

    def add_behind(self, number: int, ns: int) -> None:
        """Work went on for so long behind the segment with this number."""
        self.segments[number] = self.segments[number].model_copy(update={"behind_ns": ns})

    def salvage(self) -> None:
        """After a death: what the segments in flight had written by then. A window that was never begun
        still holds an older segment, which is known by its time."""
        while self._pending:
            pending = self._pending.popleft()
            try:
                stamps, losses = read_recorder(self._fd, pending.window)
            except LaunchError:
                return  # why it ended is known, and this is not it
            times = stamp_times_ns(stamps)
            if len(times) == 0 or times[0] <= self._last_ns:
                continue
            whole = int(np.argmax(np.diff(times) < 0)) + 1 if np.any(np.diff(times) < 0) else len(times)
            stamps = stamps[:whole]
            steps = int(np.count_nonzero((stamps & np.uint64(0xFF)) == np.uint64(1)))
            self._keep(pending.kind, stamps, losses[:steps], None)
