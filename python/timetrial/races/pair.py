"""One pair of launches: its start, its turns, and what it says when its launches have ended."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.analysis.raced import RACED, Ride, scatter_of
from timetrial.cases.keys import is_callable_word
from timetrial.experiment.describe import limits_of, prepare_files
from timetrial.experiment.memory import side_by_side_at_most
from timetrial.experiment.places import may_start_beside, padding, processors_for, starts_on
from timetrial.experiment.validate import ReadyCase
from timetrial.heats.heat import Course, Heat, Ridden, Round, lengthened, schedule
from timetrial.heats.lengths import FEWEST_ROUNDS, RACE_TURN_NS, RHYTHM_NS
from timetrial.processes.left import remove
from timetrial.races.rounds import FEWEST, MOST, fewest_rounds, wanted_rounds
from timetrial.records import race as records
from timetrial.records import sessions
from timetrial.records.model import LaunchRecord
from timetrial.records.race import PairRecord, Stage
from timetrial.results.results import LaunchFiles

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan
    from timetrial.races.state import RaceState
    from timetrial.records.model import Purpose

WARMUP_NS = 200_000_000  # at most; it ends as soon as the steps are steady
RHYTHM_SHARE = 20  # of the time that is left, one part
APART_TURN_NS = 250_000_000  # of sides beside which something goes on: bursts and buffers even out


@dataclass
class StartedPair:
    """A pair whose rounds are over."""

    number: int
    stage: Stage
    sides: Sequence[ReadyCase]  # the base first
    plans: Sequence[LaunchPlan]
    order: Sequence[tuple[int, ...]]  # of the rounds that there may be
    heats: Sequence[Heat]  # one, or in the order of the first round one for each side, which was alone
    seconds: float  # from its first start to its last turn

    @property
    def span(self) -> int:
        """Its turns are whole multiples of so many steps."""
        return max(
            (span for one in self.heats if one.ridden for span in one.ridden.spans.values()), default=1
        )

    def ended(self, state: RaceState, *, look: bool) -> PairRecord:
        """Waits until its launches have ended. `look`: the clock asks for a look behind it."""
        records_of = [record for heat in self.heats for record in heat.records()]
        if len(self.heats) > 1:
            records_of = [records_of[list(self.order[0]).index(side)] for side in range(len(self.sides))]
        ratios, scatter, void = _compared(state, self.sides, self.plans, records_of)
        ran = min(sum(one.kind == "turn" for one in record.segments) for record in records_of)
        ridden = self.heats[0].ridden if len(self.heats) == 1 else None
        return PairRecord(
            number=self.number,
            stage=self.stage,
            sides=[one.case.id for one in self.sides],
            rounds=[list(one) for one in self.order[:ran]],
            processors=sorted(self.plans[0].processors) if self.plans[0].processors else None,
            log_ratios=ratios,
            void=void,
            seconds=self.seconds,
            span=self.span,
            turns_s=ridden.rounds_s if ridden else None,
            scatter=scatter,
            look=look,
        )

    def cancel(self) -> None:
        """Ends what is left of its launches."""
        for heat in self.heats:
            heat.cancel()


def start_pair(
    state: RaceState, sides: Sequence[ReadyCase], stage: Stage, started: Callable[[], None]
) -> StartedPair:
    """A pair from its start to the end of its rounds. `started` is called before anything of it is timed:
    what still goes on of the pair before ends then."""
    sessions.check_there(state.folder)
    number, state.next_pair = state.next_pair, state.next_pair + 1
    rng = random.Random(f"{state.experiment.spec.seed} {stage} {number}")
    processors = processors_for([one.case for one in sides], rng)
    environment = state.experiment.spec.environment
    alone = frozenset(place for place, one in enumerate(sides) if not may_start_beside(one, environment))
    at_once = 1 if state.isolated else side_by_side_at_most(len(sides) - len(alone))
    plans = []
    for position, one in enumerate(sides):
        folder = records.pair_folder(state.folder, number) / one.case.id
        plan = plan_of(state, one, "race", folder, number, position, padding(rng))
        beside = 1 if position in alone else at_once
        plans.append(replace(plan, processors=processors, at_once=beside))
    if alone or state.isolated:  # nothing passes beside what is timed, nor beside kernels that are tried
        started()
    began = time.monotonic()
    most = FEWEST if state.isolated or state.metric == "peak_memory" else MOST
    order = schedule(len(sides), most, rng)
    if state.isolated:
        heats = [_ride_alone(state, plans, place, order[0], rng) for place in range(len(sides))]
        rode = [(heat, [side]) for heat, side in zip(heats, order[0], strict=True)]
    else:
        heats = [_ride_together(state, plans, alone, order, rng, started)]
        rode = [(heats[0], [*range(len(sides))])]
    goes_on = _going_on(sides, rode)
    if goes_on and not state.goes_on:
        heats[0].records()
        _race_apart(state, number, goes_on)
        return start_pair(state, sides, stage, lambda: None)
    return StartedPair(number, stage, sides, plans, order, heats, time.monotonic() - began)


def _ride_together(
    state: RaceState,
    plans: Sequence[LaunchPlan],
    alone: frozenset[int],
    order: Sequence[Round],
    rng: random.Random,
    started: Callable[[], None],
) -> Heat:
    """All sides, to the end of their rounds. `alone`: those that start with nobody beside them."""
    left_s, cases = state.budget.left_s, [one.case.id for one in plans]

    def wanted(ridden: Ridden) -> int:
        return wanted_rounds(ridden, state.pairs, cases)

    course = Course(
        order,
        starts_on=starts_on(plans[0].processors, max(one.at_once for one in plans), rng),
        alone=alone,
        wanted=wanted,
        first=FEWEST_ROUNDS,
        started=(lambda: None) if alone else started,
        spans=dict.fromkeys(range(len(plans)), state.span or 1),
        longer=lengthened(len(order), len(plans), rng),
        deadline=None if left_s is None else time.monotonic() + left_s,
    )
    return state.engine.heat(plans, course)


def _ride_alone(
    state: RaceState, plans: Sequence[LaunchPlan], place: int, order: Round, rng: random.Random
) -> Heat:
    """The side at this place of the order by itself, to its end. Each that is left has an equal share of the
    time."""
    left_s, sides_left = state.budget.left_s, len(plans) - place
    course = Course(
        [(0,)] * FEWEST,
        wanted=lambda ridden: fewest_rounds(len(plans) * ridden.rounds_s / len(ridden.step_ns), 1),
        first=FEWEST_ROUNDS,
        spans={0: state.span or 1},
        turn_ns=APART_TURN_NS if state.goes_on else RACE_TURN_NS,
        deadline=None if left_s is None else time.monotonic() + left_s / sides_left,
        longer=lengthened(FEWEST, 1, rng),
    )
    heat = state.engine.heat([plans[order[place]]], course)
    heat.records()
    return heat


def _going_on(sides: Sequence[ReadyCase], rode: Sequence[tuple[Heat, Sequence[int]]]) -> dict[str, str]:
    """By case what goes on while a side is stopped, by heats and the places in `sides` of those in them."""
    return {
        sides[places[one]].case.id: words
        for heat, places in rode
        if heat.ridden is not None
        for one, words in heat.ridden.goes_on.items()
    }


def _race_apart(state: RaceState, number: int, goes_on: dict[str, str]) -> None:
    """Forgets a pair, and has each side ride alone from here on: what goes on while a side is stopped would
    be a gift to it."""
    remove(records.pair_folder(state.folder, number))
    state.isolated, state.goes_on, state.overlaps = True, True, False
    words = [
        f"{state.names[case]} has helpers that go on while it is stopped ({words})"
        for case, words in goes_on.items()
    ]
    record = records.read_race(state.folder)
    found = record.model_copy(update={"isolated": True, "why_isolated": "; ".join(words), "goes_on": True})
    records.rewrite_race(state.folder, found)


def plan_of(
    state: RaceState,
    one: ReadyCase,
    purpose: Purpose,
    folder: Path,
    block: int,
    position: int,
    environment: dict[str, str],
) -> LaunchPlan:
    """One launch of a side."""
    from timetrial.launch import LaunchPlan, Measure

    spec = state.experiment.spec
    return LaunchPlan(
        case=one.case,
        prepared=prepare_files(state.engine, one, spec, spec.seed),
        purpose=purpose,
        folder=folder,
        seed=spec.seed,
        block=block,
        position=position,
        measure=Measure(
            warmup_ns=WARMUP_NS,
            rhythm_ns=_rhythm_ns(state) if purpose == "race" and is_callable_word(one.case.backend) else 0,
            limits=limits_of(spec),
        ),
        proof=state.proofs.get(one.case.content_id) if purpose != "proof" else None,
        kept=state.made.kept(one) if purpose != "proof" else None,
        environment={**spec.environment, **environment},
        contender=one.contender,
    )


def _rhythm_ns(state: RaceState) -> int:
    """How long the steps are looked at for a period: in the first pair, and in each where sides ride apart
    because of what goes on beside them, whose buffers empty meanwhile."""
    if state.span is not None and not state.goes_on:
        return 0
    left_s = state.budget.left_s
    return RHYTHM_NS if left_s is None else min(RHYTHM_NS, int(1e9 * max(0.0, left_s) / RHYTHM_SHARE))


def _compared(
    state: RaceState,
    sides: Sequence[ReadyCase],
    plans: Sequence[LaunchPlan],
    launches: Sequence[LaunchRecord],
) -> tuple[dict[str, dict[str, float]], dict[str, float], str | None]:
    """By challenger and statistic ln(challenger / base), and by challenger how that of one round scatters; or
    why the pair is void."""
    failed = next((k for k, one in enumerate(launches) if one.outcome != "ok"), None)
    if failed is not None:
        one = launches[failed]
        return {}, {}, f"{state.names[sides[failed].case.id]}: {one.outcome}: {one.reason}"
    found, scatter = {}, {}
    base, *others = (
        Ride(record, cache(LaunchFiles(record, plan.folder).steps), side.case.workload.batch_size)
        for record, plan, side in zip(launches, plans, sides, strict=True)
    )
    try:
        for side, challenger in zip(sides[1:], others, strict=True):
            found[side.case.id] = RACED[state.metric].log_ratios(base, challenger)
            of_round = None if state.metric == "peak_memory" else scatter_of(base, challenger)
            if of_round is not None:
                scatter[side.case.id] = of_round
    except ValueError as error:
        return {}, {}, str(error)
    return found, scatter, None
