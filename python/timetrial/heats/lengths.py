"""How long a turn is, and who rides in which rounds."""

from __future__ import annotations

import math

from timetrial.core.recorder import MAX_SEGMENT_STEPS

RACE_TURN_NS = 20_000_000
# A round is compared with nothing but itself: the shorter its turns, the more rounds there are in the same
# time, and the less the machine changes within one. The first step of a turn finds another contender's
# caches, which costs about a millisecond, and does not count; a step that is long beside that is a turn by
# itself.
FEWEST_RACE_STEPS = 2
LONG_RACE_STEP_NS = 30_000_000
FEWEST_ROUNDS = 2  # of a race, before it is asked how many it wants: one in either order
COLD_STEPS = 2  # of a turn: they find the caches of another contender; of a short one, one
FEWEST_WITH_COLD = 10
RHYTHM_NS = 2_500_000_000  # of the first warm-up of somebody's own step, at most: a period of it shows
LONGEST_SPAN_NS = 4_000_000_000  # of a turn, so that the periods of both sides end with it
# Of a heat: shorter than the machine stays on one level. The first step finds the caches of another contender
# and does not count; with fewer than four it would cost more than it is worth, unless steps are so long that
# others come and go within one. A step of a second knows no cold caches.
TURN_NS = 35_000_000
FEWEST_TURN_STEPS = 4
LONG_TURN_NS = 250_000_000  # unless two steps take longer
LONG_STEP_NS = 1_000_000_000
# Before the turns, however long they take: with the first step, all that are compared with the proof.
FEWEST_WARMUP_STEPS = 4
FEWEST_RIDES = 3  # rounds in which even the slowest rides
REPEATED_SHARE = 0.25  # of a contender's turns may be repeated because others disturbed them
REPEATS_IN_A_ROUND = 2  # of one of them: who disturbs for longer is met again in the next round


def cold_steps(steps: int) -> int:
    """How many steps at the start of a turn do not count."""
    return COLD_STEPS if steps >= FEWEST_WITH_COLD else min(1, steps - 1)


def equal_steps(step_ns: float, span: int = 1, turn_ns: int = RACE_TURN_NS) -> int:
    """Steps of a turn in a race, the same for each side; `step_ns` is what the fastest needs. Those that
    count are a whole multiple of `span`."""
    if step_ns >= max(LONG_RACE_STEP_NS, turn_ns) and span == 1:
        return 1
    return _whole(max(FEWEST_RACE_STEPS, math.ceil(turn_ns / step_ns)), span)


def _whole(steps: int, span: int) -> int:
    """At least so many, as far as a segment holds them, of which a whole multiple of `span` counts."""
    if span == 1:
        return min(steps, MAX_SEGMENT_STEPS)
    counting = span * math.ceil((min(steps, MAX_SEGMENT_STEPS - span - 1) - 1) / span)
    return counting + cold_steps(counting + COLD_STEPS)


def may_be_longer(steps: int, span: int) -> bool:
    """Whether turns of so many steps take one more in some rounds, by chance: the step that does not count
    would meet the same phase of a period that nobody has seen in each of them."""
    return span == 1 and 1 < steps < FEWEST_WITH_COLD


def turn_steps(step_ns: float, span: int = 1) -> int:
    """Steps of a turn in a heat, of a contender that needs `step_ns` for each. Those that count are a whole
    multiple of `span`."""
    if step_ns >= LONG_STEP_NS and span == 1:
        return 1
    fewest = max(2, min(FEWEST_TURN_STEPS, int(LONG_TURN_NS / step_ns)))
    return _whole(max(fewest, math.ceil(TURN_NS / step_ns)), span)


def rides_of(turn_ns: float, rounds: int, budget_ns: int) -> int:
    """In how many of the rounds a contender rides whose turns take so long."""
    return min(rounds, max(FEWEST_RIDES, int(budget_ns / turn_ns)))


def rides_round(number: int, rides: int, rounds: int) -> bool:
    """Whether someone who rides in some of the rounds, at equal distances, rides in this one."""
    return (number + 1) * rides // rounds > number * rides // rounds


def repeats_of(rounds: int) -> int:
    """How many turns of a contender may be repeated in a heat."""
    return math.ceil(REPEATED_SHARE * rounds)
