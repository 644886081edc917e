"""Two rows of one experiment, compared by the rule of a race.

The launches of a heat stand for a pair, as in a race; of rows that shared none (other threads, isolated
launches) those of a block, which ran one after the other: that is coarser, so differences must be larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from timetrial.analysis.ratios import SAME_WORK, ratios_of
from timetrial.analysis.summary import Row
from timetrial.errors import InputError
from timetrial.statistics.verdict import Effect, Rule, Verdict, decide

RULE = Rule()
FEWEST_PAIRS = 4


@dataclass(frozen=True)
class Contrast:
    """What the step times of two rows say. `effect` is challenger over base minus 1."""

    base: str  # label of the row that is compared with
    challenger: str  # label of the row that is compared
    verdict: Verdict | None  # None: it cannot be judged, and `reason` says why
    reason: str | None  # why there is no verdict, in words
    effect: Effect | None  # challenger over base minus 1
    pairs: int  # blocks in which both are ok
    p_value: float | None  # two-sided, that there is no effect
    minimal_detectable_effect: float | None  # a fraction: what so many pairs find in 9 of 10 comparisons
    log_ratios: list[float]  # ln(challenger / base), by block

    def __repr__(self) -> str:
        pair = f"{self.challenger} against {self.base}"
        if self.verdict is None or self.effect is None:
            return f"{pair}: not judged: {self.reason}"
        low, high = 100 * self.effect.low, 100 * self.effect.high
        words = (
            f"{pair}: {self.verdict}, step time {100 * self.effect.estimate:+.1f} % [{low:+.1f}, {high:+.1f}]"
        )
        if self.verdict == "inconclusive" and self.minimal_detectable_effect is not None:
            return (
                f"{words}; differences under {100 * self.minimal_detectable_effect:.1f} % "
                f"cannot be seen with these {self.pairs} pairs"
            )
        return f"{words}, {self.pairs} pairs"


def contrast(base: Row, challenger: Row, names: tuple[str, str]) -> Contrast:
    """Of rows of one experiment. InputError for rows whose step times measure different work."""
    for key in SAME_WORK:
        own, other = getattr(base.case, key), getattr(challenger.case, key)
        if own != other:
            raise InputError(
                f"'{names[0]}' and '{names[1]}' differ in {key} ({own}, {other}): their step times measure "
                "different work. Compare rows that differ in who does it, or how."
            )
    log_ratios = [math.log(ratio) for ratio in ratios_of(challenger, base)]
    reason = _obstacle(base, challenger, names, len(log_ratios))
    if reason is not None:
        return Contrast(*names, None, reason, None, len(log_ratios), None, None, log_ratios)
    # One look, at all there is: how many launches there are was not decided by what they said of this pair.
    found = decide(log_ratios, RULE, "lower", last=True)
    assert found is not None
    return Contrast(
        *names, found.verdict, None, found.effect, found.pairs, found.p_value,
        found.minimal_detectable_effect, log_ratios,
    )  # fmt: skip


def _obstacle(base: Row, challenger: Row, names: tuple[str, str], pairs: int) -> str | None:
    for row, name in zip((base, challenger), names, strict=True):
        if row.outcome != "ok":
            return f"{name} is {row.outcome or 'not measured'}{f': {row.reason}' if row.reason else ''}"
    if pairs < FEWEST_PAIRS:
        return f"{pairs} pairs of launches: at least {FEWEST_PAIRS} are needed (launches={FEWEST_PAIRS})"
    return None
