"""One contender under its supervisor: starts it, talks to it, and leaves nothing running."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from timetrial.caps.caps import Caps
from timetrial.caps.in_force import InForce
from timetrial.cautions import Caution
from timetrial.control_groups import out_of_memory_kills
from timetrial.core import native
from timetrial.core.observer import Observer
from timetrial.endings.causes import reached
from timetrial.endings.stuck import ask_for_stacks, stuck_threads
from timetrial.errors import MeasurementError
from timetrial.processes.events import AnswerType, Asked, Failed, Finished, Ready, Said, broken, read_event
from timetrial.processes.orphans import end_orphans
from timetrial.processes.outcome import (
    LaunchError,
    from_exit,
    from_failed_event,
    from_signal,
    from_watchdog,
)
from timetrial.processes.output import OutputFile, tail
from timetrial.processes.pipes import LINE_LIMIT, LineReader, wait_readable, write_line
from timetrial.processes.running_time import RunningTime
from timetrial.records.model import Ending, StuckThread
from timetrial.stopping import shielded

COMMANDS_FD, EVENTS_FD, RECORDER_FD, CONTROL_FD, STATUS_FD = 3, 4, 5, 6, 7
KILL_WAIT_S = 10.0
# How often a silent contender is looked at. Within a segment of 250 ms this never happens.
TICK_S = 0.5
OUTPUT_FILES = ("stdout.txt", "stderr.txt")
PAUSE_WAIT_S = 10.0
PAUSE_TICK_S = 0.0002


@dataclass(frozen=True)
class Command:
    """What timetrial-exec is asked to start."""

    program: Sequence[str]
    environment: Mapping[str, str]
    affinity: str | None = None
    nice: int | None = None
    huge_pages: bool = True
    caps: Caps = field(default_factory=Caps)
    sample_hz: int | None = None  # looks at what it uses, a second
    samples: Path | None = None  # the folder that gets them

    def line(self) -> list[str]:
        """The whole command line."""
        options: list[str] = []
        if self.affinity is not None:
            options += ["--affinity", self.affinity]
        if self.nice is not None:
            options += ["--nice", str(self.nice)]
        if not self.huge_pages:
            options += ["--huge-pages", "never"]
        options += self.caps.options()
        if self.sample_hz is not None:
            options += ["--samples", str(self.samples), "--sample-hz", str(self.sample_hz)]
        options += ["--control", str(CONTROL_FD), "--status", str(STATUS_FD), "--"]
        return [str(native.exec_path()), *options, *self.program]


def is_stopped(pid: int) -> bool | None:
    """Whether every thread of a process stands still by a signal. None: it is gone, or ended."""
    states = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
                states.append(file.read().rpartition(b")")[2].split()[0])
    alive = [state for state in states if state not in (b"Z", b"X")]
    return all(state in (b"T", b"t") for state in alive) if alive else None


class ContenderProcess:
    """Use it as a context: leaving it kills whatever is left of the contender and closes every pipe."""

    def __init__(self, command: Command, recorder_fd: int, folder: Path):
        self.command = command
        self._folder = folder.resolve()
        self._stderr = self._folder / OUTPUT_FILES[1]
        self.pid: int | None = None  # of the contender, not of its supervisor
        self.started_ns = 0
        self._running: RunningTime | None = None
        self.doing = "start"
        self.in_force = InForce(command.caps)
        self._asked: deque[Asked[Any]] = deque([Asked("start", Ready)])
        self._events: deque[Said] = deque()
        self._reports: list[str] = []
        self._oom_kills = out_of_memory_kills()
        try:
            self._output = [OutputFile(folder / name) for name in OUTPUT_FILES]
        except OSError as error:
            raise MeasurementError(f"'{folder}' cannot be written: {error.strerror}") from error
        try:
            self._spawn(recorder_fd, folder)
        except OSError as error:
            raise MeasurementError(
                f"cannot start {self.command.line()[0]}: {error.strerror} ({folder})"
            ) from error

    def _spawn(self, recorder_fd: int, folder: Path) -> None:
        with contextlib.ExitStack() as on_failure:
            for output in self._output:
                on_failure.callback(output.close)
            for group in self.command.caps.groups:
                group.make()
                on_failure.callback(group.remove)
            ours: list[int] = []
            theirs: list[int] = []
            for writes in (True, False, True, False):  # commands, events, control, status
                read_end, write_end = os.pipe()
                on_failure.callback(os.close, read_end)
                on_failure.callback(os.close, write_end)
                ours.append(write_end if writes else read_end)
                theirs.append(read_end if writes else write_end)
            # Out of the way of the numbers 3 to 7, so that no dup2 overwrites what a later one needs.
            sources = [theirs[0], theirs[1], recorder_fd, theirs[2], theirs[3]]
            high: list[int] = []
            try:
                for fd in sources:
                    high.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64))
                actions: list[tuple[Any, ...]] = [
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    *(
                        (os.POSIX_SPAWN_OPEN, fd, str(folder / name), os.O_WRONLY | os.O_APPEND, 0)
                        for fd, name in enumerate(OUTPUT_FILES, start=1)
                    ),
                    *((os.POSIX_SPAWN_DUP2, fd, COMMANDS_FD + i) for i, fd in enumerate(high)),
                ]
                line = self.command.line()
                self.supervisor = os.posix_spawn(
                    line[0],
                    line,
                    dict(self.command.environment),
                    file_actions=actions,
                    setsigmask=[],
                    # Python ignores SIGPIPE, and ignored signals are inherited.
                    setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ],
                )
            finally:
                for fd in high:
                    os.close(fd)
            on_failure.pop_all()
        for fd in theirs:
            os.close(fd)
        self._commands, events, self._control, status = ours
        self._event_reader = LineReader(events)
        self._status_reader = LineReader(status)
        self._closed = False

    def __enter__(self) -> ContenderProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, command: str, answer: type[Said]) -> None:
        """Queues a command; `answer` is the event it will get. A contender that is gone is noticed by the
        next wait()."""
        self._asked.append(Asked(command.split(" ", 1)[0], answer))
        write_line(self._commands, command)

    def wait(
        self,
        answer: type[AnswerType],
        doing: str,
        timeout_s: float,
        *,
        progress: Callable[[], object] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> AnswerType:
        """The answer to the oldest command under way. Raises LaunchError when there will be none, or none
        within `timeout_s` of running time since `progress()` last changed."""
        self.doing = doing
        seen: object = None  # looked at from the first tick on: most waits end before it
        silent_s = 0.0
        if self._running:
            self._running.restart()
        while True:
            # The first event may overtake the supervisor's report of the start.
            if self._events and (self.pid or self._status_reader.ended):
                return self._expected(self._events.popleft(), answer)
            if cancelled and cancelled():
                raise KeyboardInterrupt
            if self._event_reader.ended or self._final_report():
                self._drain_pipes()
                if self._events:
                    continue
                raise self._ended()
            began = time.monotonic()
            for output in self._output:
                output.trim()
            heard = wait_readable((self._event_reader, self._status_reader), min(TICK_S, timeout_s))
            self._read_pipes()
            if heard:
                continue
            silent_s += self._running() if self._running else time.monotonic() - began
            if progress and (now := progress()) != seen:
                seen, silent_s = now, 0.0
            if silent_s >= timeout_s:
                stopped = self._running is not None and self._running.stopped
                why = "; it stands still by a signal that is not ours" if stopped else ""
                words = f"no progress for {timeout_s:g} s of running time during {doing}{why}; ended by us"
                raise LaunchError("hang", words, ending=self._standstill())

    def _standstill(self) -> Ending:
        """Where it stands, before it is ended."""
        threads: list[StuckThread] = []
        if self.pid is not None:
            with contextlib.suppress(OSError):
                threads = stuck_threads(Observer(self.pid, self.supervisor).read().threads)
            ask_for_stacks(self.pid, self._stderr)
        return Ending(threads=threads, caps=self.command.caps.words or None)

    def pause(self) -> None:
        """Stops every task of the contender, and of what it started. They stand still when this returns, so
        that pools which spin after their last region take nothing from another contender."""
        self._signal_group("stop", stopped=True)

    def resume(self) -> None:
        """Lets a paused contender go on."""
        self._signal_group("continue", stopped=False)

    def _signal_group(self, line: str, *, stopped: bool) -> None:
        write_line(self._control, line)
        deadline = time.monotonic() + PAUSE_WAIT_S
        while self.pid is not None and is_stopped(self.pid) is (not stopped):
            if time.monotonic() > deadline:
                words = f"it did not {line} within {PAUSE_WAIT_S:g} s, or its supervisor did not make it"
                raise LaunchError("hang", words)
            time.sleep(PAUSE_TICK_S)

    def _expected(self, event: Said, answer: type[AnswerType]) -> AnswerType:
        if isinstance(event, Failed):
            raise from_failed_event(event.outcome, event.where, event.text, self.command.caps)
        assert isinstance(event, answer), f"{event} is not what the command was sent for"
        return event

    def _read_pipes(self) -> None:
        for line in self._event_reader.read_lines():
            self._events.append(read_event(line, self._asked.popleft() if self._asked else None))
        if self._event_reader.too_long:
            raise broken(f"it wrote {LINE_LIMIT >> 20} MiB of events, more than any answer has")
        for report in self._status_reader.read_lines():
            parts = report.split(maxsplit=2)
            if parts[:1] == [b"started"]:
                self.pid, self.started_ns = int(parts[1]), int(parts[2])
                with contextlib.suppress(ProcessLookupError):  # it has ended, and been reaped, already
                    self._running = RunningTime(Observer(self.pid), 4 * TICK_S)
            else:
                self._report(report.decode("utf-8", "replace"))

    def _report(self, words: str) -> None:
        self._reports.append(words)
        self.in_force.heard(words, self.pid)

    def _drain_pipes(self) -> None:
        """After the end: what it still said lies in the pipes; the supervisor says how it ended."""
        deadline = time.monotonic() + KILL_WAIT_S
        while not self._final_report() and not self._status_reader.ended and time.monotonic() < deadline:
            late = time.monotonic() > deadline - KILL_WAIT_S + 1
            lives = self.pid is not None and is_stopped(self.pid) is not None
            if self._event_reader.ended and not self._events and late and lives:
                raise broken("it closed its event pipe and went on")
            wait_readable((self._event_reader, self._status_reader), 0.2)
            self._read_pipes()
        self._read_pipes()

    def _final_report(self) -> bool:
        return any(report.split()[0] in ("exited", "signaled", "error") for report in self._reports if report)

    @property
    def exit_code(self) -> int | None:
        """Of a contender that has ended by itself; None: it runs, or a signal ended it."""
        codes = [report.split()[1] for report in self._reports if report.startswith("exited ")]
        return int(codes[0]) if codes else None

    @property
    def unsampled(self) -> list[str]:
        """Why the supervisor stopped looking at it, if it did."""
        reports = [report.partition(" ") for report in self._reports]
        return [Caution.UNSAMPLED.words(why=why) for word, _, why in reports if word == "unsampled"]

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        """For whoever looks at it: that it has just ended is no ProcessLookupError, but how it ended."""
        try:
            yield
        except ProcessLookupError:
            self._drain_pipes()
            raise self._ended() from None

    def _ended(self) -> Exception:
        caps = self.command.caps
        for report in self._reports:
            word, _, rest = report.partition(" ")
            if word == "capped":
                return from_watchdog(int(rest), self.doing, caps)
            if word == "exited":
                return from_exit(int(rest), self.doing, caps, tail(self._stderr))
            if word == "signaled":
                killed = out_of_memory_kills().since(self._oom_kills)
                return from_signal(int(rest), self.doing, caps, tail(self._stderr), killed)
            if word == "error" and reached(rest, caps) is not None:  # it has no room for the program itself
                return from_exit(127, self.doing, caps, rest)
            if word == "error":
                return MeasurementError(f"the supervisor could not start the contender: {rest}")
        return LaunchError("crash", f"somebody ended the supervisor of the contender during {self.doing}")

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            write_line(self._control, "kill")

    def finish(self, timeout_s: float) -> None:
        """The orderly end: the contender says goodbye and exits."""
        self.send("finish", Finished)
        self.wait(Finished, "finish", timeout_s)
        deadline = time.monotonic() + timeout_s
        while not self._final_report() and not self._status_reader.ended:
            if time.monotonic() > deadline:
                words = f"the contender said it had finished and did not exit within {timeout_s:g} s"
                raise LaunchError("hang", words)
            wait_readable((self._status_reader,), TICK_S)
            self._read_pipes()
        self._read_pipes()  # what it said behind its goodbye
        for report in self._reports:
            if report.split()[0] in ("exited", "signaled") and report != "exited 0":
                self.doing = "exit, after its work was done"
                raise self._ended()

    @shielded
    def close(self) -> None:
        """Kills what is left, waits until the supervisor says that nothing is, closes the pipes."""
        if self._closed:
            return
        self._closed = True
        self._kill()
        # End of file means the same as `kill`, should that line not have been read.
        os.close(self._control)
        os.close(self._commands)
        deadline = time.monotonic() + KILL_WAIT_S
        gone = "gone" in self._reports
        try:
            while not self._status_reader.ended and time.monotonic() < deadline:
                if wait_readable((self._status_reader,), 0.2):
                    for report in self._status_reader.read_lines():
                        self._report(report.decode("utf-8", "replace"))
            gone |= "gone" in self._reports
        finally:
            os.close(self._event_reader.fd)
            os.close(self._status_reader.fd)
            if not self._status_reader.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.supervisor, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.supervisor, 0)
            if not gone:
                end_orphans(self._folder, self.pid)
            for group in self.command.caps.groups:
                group.remove()
            for output in self._output:
                output.close()
