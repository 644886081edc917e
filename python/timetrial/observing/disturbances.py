"""Launches that something else on the machine has disturbed. They are kept and counted, never dropped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from timetrial.cautions import Caution, Remark
from timetrial.records.model import TIMED, LaunchRecord

STEAL_LIMIT = 0.02  # of the CPUs that the contender used
WAIT_LIMIT = 0.05  # of the time, for the thread that waits longest: less is the scheduler finding its way
TURN_WAIT_LIMIT = 0.15  # of a turn: threads that wake up together share a processor for some milliseconds
# CPUs that other programs may use where the contender runs. An idle machine keeps house with up to half a
# percent of each CPU, and a program that needs most of one CPU counts on a machine of any size.
OTHERS_LIMIT = 0.1
OTHERS_LIMIT_EACH = 0.005
OTHERS_LIMIT_MOST = 0.5
FREQUENCY_LIMIT = 0.9  # of the highest among launches
# The counts of idle and stolen time are told in steps of 10 ms.
_IDLE_STEP_S = 0.02
_STEAL_STEP_S = 0.01
_OVERSUBSCRIBED = 0.1  # CPUs that the contender's own threads want beyond those there are


@dataclass(frozen=True)
class Causes:
    """What disturbed one launch; 0 and empty: did not."""

    others_cpus: float = 0.0
    cpus: int = 0
    programs: tuple[str, ...] = ()
    steal_ratio: float = 0.0
    throttled_s: float = 0.0
    wait_ratio: float = 0.0
    heat_throttles: int = 0

    def __bool__(self) -> bool:
        return self != Causes()


def causes_of(record: LaunchRecord) -> Causes:
    """Of one launch."""
    return causes_by(record.witnesses, record.others)


def causes_by(
    witnesses: Mapping[str, float | None],
    programs: Mapping[str, float] | None = None,
    *,
    wait_limit: float = WAIT_LIMIT,
) -> Causes:
    """By the witnesses of a launch, or of a turn; `programs`: CPUs that others used, by name. Records older
    than `others_cpus` tell of the hypervisor alone: what they counted as other programs was mostly the
    contender's own end."""
    seen = {name: value for name, value in witnesses.items() if value is not None}
    wall_s = seen.get("wall_s", float("inf"))
    cpus = int(seen.get("cpus", 0))
    others = seen.get("others_cpus", 0.0)
    limit = min(OTHERS_LIMIT + OTHERS_LIMIT_EACH * cpus, OTHERS_LIMIT_MOST)
    idle_error_s = _IDLE_STEP_S * math.sqrt(seen.get("idle_lines", 1))
    many = others - idle_error_s / wall_s > limit
    steal = seen.get("steal_ratio", 0.0)
    wait = seen.get("wait_ratio", 0.0)
    throttled = seen.get("throttled_s", 0.0)
    # More runnable threads than CPUs: they wait for each other. While a quota stops them they wait as well.
    waits = wait > wait_limit and not throttled and seen.get("runnable_cpus", 0.0) <= cpus + _OVERSUBSCRIBED
    return Causes(
        others_cpus=others if many else 0.0,
        cpus=cpus if many else 0,
        programs=_chief(programs or {}, others) if many else (),
        steal_ratio=steal if steal - _STEAL_STEP_S / wall_s > STEAL_LIMIT else 0.0,
        throttled_s=throttled,
        wait_ratio=wait if waits else 0.0,
        heat_throttles=int(seen.get("heat_throttles", 0)),
    )


def _chief(programs: Mapping[str, float], others_cpus: float) -> tuple[str, ...]:
    """Those that used a quarter or more of what others used; nobody, if what is seen is not where it went."""
    return tuple(name for name, cpus in programs.items() if cpus >= 0.25 * others_cpus)


def is_disturbed(record: LaunchRecord) -> bool:
    """Whether somebody or something else took what shows in timings."""
    return bool(causes_of(record))


def noise(records: Sequence[LaunchRecord]) -> list[Remark]:
    """What to say about all timed launches, and of which cases; nothing if they were left alone."""
    timed = [record for record in records if record.purpose in (*TIMED, "race")]
    said = []
    found = [(causes, record) for record in timed if (causes := causes_of(record))]
    if found:
        words = Caution.DISTURBED.words(
            disturbed=len(found), timed=len(timed), how=in_words([causes for causes, _ in found])
        )
        said.append(Remark(words, _cases(record for _, record in found)))
    speeds = [(hz, record) for record in timed if (hz := record.witnesses.get("frequency_hz"))]
    most = max((hz for hz, _ in speeds), default=0.0)
    slow = [(hz, record) for hz, record in speeds if hz < FREQUENCY_LIMIT * most]
    if slow:
        least = min(hz for hz, _ in slow)
        words = Caution.FREQUENCY.words(lowest=f"{least / 1e9:.2g}", highest=f"{most / 1e9:.2g}")
        said.append(Remark(words, _cases(record for _, record in slow)))
    return said


def _cases(records: Iterable[LaunchRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.case for record in records))


def in_words(found: Sequence[Causes]) -> str:
    """Who took what, at most: 'another program (make) used 0.8 of the 2 CPUs'."""
    to = "up to " if len(found) > 1 else ""
    words = []
    most = max(found, key=lambda one: one.others_cpus)
    if most.others_cpus:
        names = [name for name, _ in Counter(n for one in found for n in one.programs).most_common(3)]
        who = "another program" if len(names) == 1 else "other programs"
        named = f" ({', '.join(names)})" if names else ""
        plural = "s" if most.cpus != 1 else ""
        words.append(f"{who}{named} used {to}{most.others_cpus:.1f} of the {most.cpus} CPU{plural}")
    steal = _most(one.steal_ratio for one in found)
    if steal:
        words.append(f"the hypervisor took {to}{100 * steal:.0f} %")
    throttled = _most(one.throttled_s for one in found)
    if throttled:
        words.append(f"throttled by a quota for {to}{1000 * throttled:.0f} ms")
    wait = _most(one.wait_ratio for one in found)
    if wait:
        words.append(f"its threads waited {to}{100 * wait:.0f} % for a CPU")
    heat = int(_most(one.heat_throttles for one in found))
    if heat:
        words.append(f"the CPU slowed down from heat {to}{heat} time{'s' if heat != 1 else ''}")
    return "; ".join(words)


def _most(values: Iterable[float]) -> float:
    return max(values, default=0.0)
