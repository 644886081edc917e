"""Failures of a launch, with what the parent knows about them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from timetrial.control.libraries import ChosenLibrary
from timetrial.launch.plan import Limits
from timetrial.processes.outcome import LaunchError

ANEW = (
    "give it an iterator that begins again (itertools.cycle, or a new DataLoader iterator), a step is called "
    "as often as measuring needs"
)
_ENDED = "StopIteration"
_PLACE = re.compile(r" \([^() ]+:\d+\)")


def in_segment(failure: LaunchError, steps: int, limits: Limits, patience_s: float) -> LaunchError:
    """Which step it was that failed, after so many; what gives a slow one more time. `patience_s`: how long
    the first one was waited for."""
    if failure.command in ("run", "parts"):
        if _ENDED in failure.reason:  # out of the step, or of a generator of its
            place = "".join(_PLACE.findall(failure.reason)[-1:])
            return failure.saying(f"its input was used up at step {steps + 1}{place}: {ANEW}")
        return failure.saying(f"{failure.reason} at step {steps + 1}")
    if failure.outcome != "hang":
        return failure
    name, limit_s = ("progress", limits.progress_timeout_s) if steps else ("start", patience_s)
    return failure.saying(f"{failure.reason}; {name}_timeout_s={2 * math.ceil(limit_s)} gives it more time")


def with_libraries(failure: LaunchError, libraries: Sequence[ChosenLibrary]) -> LaunchError:
    """What kills a contender that loads a library may be the library."""
    if failure.outcome != "crash" or not libraries:
        return failure
    named = ", ".join(f"{one.setting} = {one.path}" for one in libraries)
    return failure.saying(f"{failure.reason}, with {named}")
