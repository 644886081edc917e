"""How launches end badly. Each way is a typed outcome with words; none of them ends the experiment."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from timetrial.caps.caps import Caps
from timetrial.control_groups import Kills
from timetrial.endings.causes import reached, speaks_of_memory
from timetrial.endings.last_words import PHASE_BEHIND
from timetrial.records.model import Cause, Ending, Outcome

_OF_MEMORY = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGKILL)
_LAST = 4000  # characters of what it wrote: behind the cause there may be a long stack


@dataclass
class LaunchError(Exception):
    """Ends a launch; becomes the record's `outcome` and `reason`. Never leaves timetrial.launch."""

    outcome: Outcome
    reason: str
    command: str = ""  # that the contender was obeying when it gave up, if it said so
    ending: Ending | None = None

    def saying(self, reason: str) -> LaunchError:
        """The same in other words."""
        return replace(self, reason=reason, command="")


def from_failed_event(outcome: Outcome, where: str | None, text: str | None, caps: Caps) -> LaunchError:
    """What the contender itself said before it gave up."""
    reason = f"{text or 'the contender gave no reason'}{f' ({where})' if where else ''}"
    ending = Ending(
        cause="refused" if outcome == "oom" else None,
        caps=caps.words or None,
        boundary=PHASE_BEHIND.get(where or ""),
    )
    is_oom = outcome == "oom" and caps.memory_bytes is not None
    if outcome != "mismatch" and (is_oom or reached(reason, caps) is not None):
        cause: Cause | None = "refused" if caps.memory_bytes and speaks_of_memory(reason) else ending.cause
        ending = ending.model_copy(update={"cause": cause})
        return LaunchError("capped", f"{reason}: {caps.words} was reached", where or "", ending)
    return LaunchError(outcome, reason, where or "", ending)


def from_exit(code: int, doing: str, caps: Caps, stderr: str) -> LaunchError:
    """It ended by itself without saying why on its pipe; perhaps it did on standard error."""
    words = f"the contender ended by itself with exit code {code} during {doing}"
    ending = Ending(exit_code=code, caps=caps.words or None)
    if code == 0:
        return LaunchError("crash", words, ending=ending)
    return _told_by(stderr, words, caps, ending, perhaps=doing == "start")


def from_signal(number: int, doing: str, caps: Caps, stderr: str, killed: Kills) -> LaunchError:
    """A signal ended it. `killed`: the out-of-memory kills that the kernel counted meanwhile."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    ending = Ending(signal=name, caps=caps.words or None)
    own = caps.memory_group
    if number == signal.SIGKILL and own is not None and own.kills:
        ending = ending.model_copy(update={"cause": "cgroup", "held_bytes": own.peak_bytes})
        words = f"the kernel killed the contender during {doing}, because {caps.words} was reached"
        return LaunchError("capped", words, ending=ending)
    if number == signal.SIGKILL and (killed.group or killed.machine):
        who = "the control group that timetrial runs in" if killed.group else "the kernel"
        cause: Cause = "cgroup" if killed.group else "kernel"
        words = f"{who} ran out of memory and the contender was killed during {doing}"
        return LaunchError("oom", words, ending=ending.model_copy(update={"cause": cause}))
    words = f"the contender was ended by {name} during {doing}"
    return _told_by(stderr, words, caps, ending, perhaps=number in _OF_MEMORY)


def from_watchdog(held_bytes: int, doing: str, caps: Caps) -> LaunchError:
    """The supervisor ended it."""
    ending = Ending(cause="watchdog", held_bytes=held_bytes, caps=caps.words)
    words = f"it held {held_bytes} bytes of private memory during {doing}, beyond {caps.words}; ended by us"
    return LaunchError("capped", words, ending=ending)


def _told_by(stderr: str, words: str, caps: Caps, ending: Ending, *, perhaps: bool) -> LaunchError:
    """By what it wrote last; `perhaps` a cap that was set is the cause even where it does not say so."""
    line = reached(stderr[-_LAST:], caps)
    if line is not None:
        cause: Cause | None = "refused" if caps.memory_bytes and speaks_of_memory(line) else None
        reason = f"{words}: {caps.words} was reached: {line}"
        return LaunchError("capped", reason, ending=ending.model_copy(update={"cause": cause}))
    if not caps.words or not perhaps:
        return LaunchError("crash", words, ending=ending)
    cure = "; it may be less than its program needs to start" if "start" in words else ""
    return LaunchError("crash", f"{words} ({caps.words} was set: that may be the cause{cure})", ending=ending)
