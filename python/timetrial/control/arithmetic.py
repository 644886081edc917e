"""The settings `determinism` and `onednn.math_mode`: judged by the numbers that the proof has seen.

What a library says it was told is half of it. Whether bits repeat is seen in the proof, where five steps are
taken twice; whether products are rounded, in how far its numbers are from the judge's (precision.py). A
launch that is timed is judged by the proof before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from timetrial.processes.events import Reading
from timetrial.records.model import Parity, Setting, SettingStatus

DETERMINISM, MATH_MODE = "determinism", "onednn.math_mode"
STRICT, REDUCED_NOTE = "strict", "reduced"
_BITS = "five steps of the proof, taken twice"


@dataclass(frozen=True)
class Proven:
    """What a proof has seen; None: nobody looked."""

    same_bits: bool | None = None
    reduced: bool | None = None  # whether errors are beyond those of f32

    @classmethod
    def of(cls, parity: Parity | None) -> Proven:
        """Of an earlier launch."""
        if parity is None or parity.status == "unproven":
            return cls(None if parity is None else parity.deterministic)
        return cls(parity.deterministic, REDUCED_NOTE in parity.notes)


def judge_determinism(asked: str, reading: Reading, proven: Proven) -> Setting:
    """A getter that says otherwise is no match; without one the bits alone decide. `off` has nothing
    to show."""
    status: SettingStatus
    effective, sources = reading.effective, [reading.how_read] if reading.how_read else []
    if effective is not None and effective != asked:
        status = "ignored"
    elif asked == "off":
        effective, status = asked, "applied"
        sources = sources or ["nothing is done for it"]
    elif proven.same_bits is None:
        status = "unverifiable"
        sources.append("no proof has taken the same steps twice")
    else:
        effective = "on" if proven.same_bits else "bits differ"
        status = "applied" if proven.same_bits else "ignored"
        sources.append(_BITS)
    how = "; ".join(sources)
    return Setting(name=DETERMINISM, asked=asked, effective=effective, how_read=how, status=status)


def judge_math_mode(asked: str, reading: Reading, proven: Proven) -> Setting:
    """What allows less than f32 and has no effect on this CPU, or in these layers, is `adjusted`."""
    status: SettingStatus
    effective, sources = reading.effective, [reading.how_read] if reading.how_read else []
    if effective is not None and effective != asked:
        status = "ignored"
    elif proven.reduced is None:
        status = "unverifiable" if effective is None else "applied"
        sources.append("no proof has compared its numbers yet")
    else:
        size = "larger than" if proven.reduced else "as small as"
        sources.append(f"errors of the proof, {size} those of f32")
        if proven.reduced is (asked != STRICT):
            effective, status = asked, "applied"
        else:
            effective, status = STRICT, "adjusted"
    how = "; ".join(sources)
    return Setting(name=MATH_MODE, asked=asked, effective=effective, how_read=how, status=status)
