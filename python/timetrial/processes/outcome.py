"""How launches end badly. Each way is a typed outcome with words; none of them ends the experiment."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from timetrial.records.model import Outcome


@dataclass
class LaunchError(Exception):
    """Ends a launch; becomes the record's `outcome` and `reason`. Never leaves timetrial.launch."""

    outcome: Outcome
    reason: str
    command: str = ""  # that the contender was obeying when it gave up, if it said so


def from_failed_event(
    outcome: Outcome, where: str | None, text: str | None, *, memory_capped: bool
) -> LaunchError:
    """What the contender itself said before it gave up."""
    reason = f"{text or 'the contender gave no reason'}{f' ({where})' if where else ''}"
    if outcome == "oom" and memory_capped:
        return LaunchError("capped", f"{reason}: the memory limit of this launch was reached")
    return LaunchError(outcome, reason, where or "")


def from_exit(code: int, doing: str) -> LaunchError:
    """It ended by itself without saying why."""
    return LaunchError("crash", f"the contender ended by itself with exit code {code} during {doing}")


def from_signal(number: int, doing: str, *, out_of_memory: bool, memory_capped: bool) -> LaunchError:
    """A signal ended it. `out_of_memory`: the kernel counted an out-of-memory kill meanwhile."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGKILL and out_of_memory:
        return LaunchError("oom", f"the kernel ran out of memory and killed the contender during {doing}")
    words = f"the contender was ended by {name} during {doing}"
    if memory_capped and number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
        return LaunchError("crash", f"{words} (a memory limit was set: it may be the cause)")
    return LaunchError("crash", words)
