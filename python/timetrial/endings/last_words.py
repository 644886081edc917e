"""What a contender left on standard error: its last lines, and the stack that it or its runtime wrote."""

from __future__ import annotations

from collections.abc import Sequence

from timetrial.records.model import Ending, Evaluation, Phase

LAST_LINES = 12
MOST_STACK_LINES = 200
LONGEST_LINE = 500
# What begins a stack: Python's faulthandler, as it dies or as it is asked; timetrial-child as it dies.
_BEGINNINGS = ("Fatal Python error:", "Current thread 0x", "Thread 0x", "timetrial-child: stack ")


# What the contender says it is doing, before it is ready -> the phase behind it.
PHASE_BEHIND = {"setup": "start", "load": "start", "build": "import", "settings": "import"}


def told(
    ending: Ending | None, phases: Sequence[Phase], steps: int, evaluations: Sequence[Evaluation], stderr: str
) -> Ending:
    """The evidence of a launch that failed, how far it came, in `steps`, and what it said last."""
    known = _boundary(phases, steps, evaluations)
    said = ending.boundary if ending else None
    update = {
        "boundary": said if said and known in ("none", "exec") else known,
        "last_lines": [line[:LONGEST_LINE] for line in _lines(stderr)[-LAST_LINES:]],
        "stack": stack_in(stderr),
    }
    return (ending or Ending()).model_copy(update=update)


def stack_in(stderr: str) -> list[str]:
    """The last stack of all threads that was written; []: none was."""
    lines = _lines(stderr)
    starts = [number for number, line in enumerate(lines) if line.startswith(_BEGINNINGS)]
    if not starts:
        return []
    first = starts[-1]
    while first - 1 in starts or _belongs(lines, first, starts):
        first = max(one for one in starts if one < first)
    return [line[:LONGEST_LINE] for line in lines[first : first + MOST_STACK_LINES]]


def _belongs(lines: Sequence[str], start: int, starts: Sequence[int]) -> bool:
    """Whether what is above this beginning is the stack of another thread, up to another beginning."""
    above = [one for one in starts if one < start]
    return bool(above) and all(line.startswith("  ") for line in lines[above[-1] + 1 : start])


def _boundary(phases: Sequence[Phase], steps: int, evaluations: Sequence[Evaluation]) -> str:
    if steps:
        later = evaluations and evaluations[-1].steps == steps
        return f"evaluation after step {steps}" if later else f"step {steps}"
    return phases[-1].name if phases else "none"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
