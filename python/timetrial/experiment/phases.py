"""What a run launches: proofs first, then speed, learning and resources; or a profile. A failure is data.

A case that has no proof, or failed too often, is left out of what follows.

The order within one phase is in order.py, the sizes in effort.py, what a launch is in timetrial.launch.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.analysis.precision import median_half_width
from timetrial.analysis.summary import Launch, summarize
from timetrial.cases.budget import Budget
from timetrial.cases.keys import is_callable_word
from timetrial.errors import InputError
from timetrial.experiment.describe import limits_of, prepare_files
from timetrial.experiment.effort import Planned, planned
from timetrial.experiment.engine import Engine
from timetrial.experiment.estimate import forecast
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.heats import heats_of, is_framework
from timetrial.experiment.learners import learners, side_by_side
from timetrial.experiment.memory import available_bytes, needed_bytes, proofs_at_once, side_by_side_at_most
from timetrial.experiment.order import alike, in_turns, shuffled_block
from timetrial.experiment.places import may_start_beside, padding, processors_for, starts_on
from timetrial.experiment.resume import Recorded
from timetrial.experiment.validate import ReadyCase
from timetrial.heats.lengths import RHYTHM_NS
from timetrial.heats.rounds import HeatRounds
from timetrial.processes.left import remove
from timetrial.progress import QuietProgress, Stage
from timetrial.proving.sharing import Proofs, proven_ones
from timetrial.records import sessions, store
from timetrial.records.model import ExperimentRecord, LaunchRecord, Parity, Purpose
from timetrial.results.results import LaunchFiles, analyzed

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan, Measure

# A case that failed this often is not launched again: the reason is known, and hangs cost minutes.
PATIENCE = 2
MOST_BLOCKS = 3  # of rounds in a heat, each as many as an effort asks for at least
BRIEF_NS = 100_000_000  # of a launch that shall only show that its steps run


@dataclass
class Run:
    """The state of a run: where records go, which cases failed, what was proven and measured."""

    experiment: Experiment
    record: ExperimentRecord
    engine: Engine
    folder: Path
    measure: Measure
    progress: QuietProgress
    recorded: Recorded  # in an earlier session
    mixed: bool = False  # whether all cases ride together, whatever their threads
    so_far: str = ""  # how finely the rows are known, for whoever watches
    analyzed: dict[Path, Launch] = field(default_factory=dict)  # by folder: each is read once
    rounds: dict[tuple[str, ...], HeatRounds] = field(default_factory=dict)  # by the cases of a heat
    # Of steps of somebody's own, by case id: over how many of them their time repeats; and what goes on while
    # they are stopped, of those that take no turns therefore.
    spans: dict[str, int] = field(default_factory=dict)
    goes_on: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)  # by case id
    proofs: dict[str, Parity | None] = field(
        default_factory=dict
    )  # by content id; a proven or unproven case is here
    made: Proofs = field(default_factory=lambda: Proofs([]))  # the proof launches

    def next_folder(self) -> Path:
        """Of a launch that is no proof. MeasurementError: the run's own folder went away."""
        sessions.check_there(self.folder)
        self.recorded.next_launch += 1
        return self.folder / "launches" / f"{self.recorded.next_launch - 1:03d}"


def profile(run: Run, live: Sequence[ReadyCase]) -> None:
    """Each case is proven, then takes its steps layer by layer."""
    run.progress.stages({"proof": Stage(len(proven_ones(live))), "profile": Stage(len(live))})
    _prove(run, live)
    run.progress.begin("profile")
    _block(run, live, "profile", 0, run.experiment.spec.seed)


def _distinct(live: Sequence[ReadyCase]) -> list[ReadyCase]:
    """Without repetitions (A/A)."""
    return list({one.case.content_id: one for one in reversed(live)}.values())[::-1]


def measure(run: Run, live: Sequence[ReadyCase]) -> None:
    """Proofs, blocks of speed until the rows are known as finely as was asked, and learning."""
    speed = _planned(run, live)
    run.progress.stages(forecast(run.experiment, live).stages)
    budget = Budget(run.experiment.spec.measure.budget)
    _prove(run, live)
    budget.begin()
    run.progress.begin("speed")
    done = 0
    for block in range(speed.fewest):
        if done and not budget.allows_another():
            break
        _speed(run, live, block)
        done += 1
    while live and speed.fewest <= done < speed.most and _is_too_wide(run) and budget.allows_another():
        run.progress.more(len(live))
        _speed(run, live, done)
        done += 1
    able = [one for one in live if _can_run(run, one, 1)]
    seeds = range(run.record.learning_seeds)

    def pupils(block: int) -> list[ReadyCase]:
        return learners(run.experiment, [one for one in able if _can_run(run, one, 1)], block, run.proofs)

    planned = [len(pupils(block)) for block in seeds]
    run.progress.begin("learning", sum(planned))
    for block in seeds:
        now = pupils(block)  # without those that failed with another seed, in whose place others learn
        run.progress.left_out(planned[block] - len(now))
        _learn(run, now, block)
    run.progress.begin("resources")
    for block in range(run.record.resource_launches):
        _block(run, live, "resources", block, run.experiment.spec.seed)


def _planned(run: Run, live: Sequence[ReadyCase]) -> Planned:
    experiment = run.experiment
    return planned(experiment.sizes, len(live), isolated=experiment.spec.measure.isolated)


def _speed(run: Run, live: Sequence[ReadyCase], block: int) -> None:
    if run.experiment.spec.measure.isolated:
        _block(run, live, "speed", block, run.experiment.spec.seed)
    else:
        _heats(run, live, block)


def _is_too_wide(run: Run) -> bool:
    """Whether the rows, all together, are not yet known as finely as was asked for."""
    for folder in store.launch_folders(run.folder):
        if folder not in run.analyzed:
            with contextlib.suppress(InputError):  # damaged: the table will say so
                run.analyzed[folder] = analyzed(LaunchFiles(store.read_launch(folder), folder))
    rows = summarize(run.record, list(run.analyzed.values())).rows
    asked, width = run.record.half_width, median_half_width(rows)
    if asked is None or width is None or width <= asked:
        return False
    run.so_far = f" · ±{100 * width:.1f} % so far, {100 * asked:g} % asked"
    return True


def check(run: Run, live: Sequence[ReadyCase]) -> None:
    """Proofs and learning; whoever has no proof, or one that was not launched here, shows in one short launch
    that its steps run."""
    measure(run, live)  # without speed launches
    brief = [one for one in _distinct(live) if not (_is_proven(run, one) and run.made.was_launched(one))]
    run.progress.begin("brief", len(brief))
    run.measure = replace(run.measure, min_ns=BRIEF_NS, budget_ns=BRIEF_NS)
    _block(run, brief, "speed", 0, run.experiment.spec.seed)


def _is_proven(run: Run, one: ReadyCase) -> bool:
    parity = run.proofs.get(one.case.content_id)
    return parity is not None and parity.status == "passed"


def _prove(run: Run, live: Sequence[ReadyCase]) -> None:
    """One for all that differ in nothing that changes what is computed. Of proofs that an earlier session
    or run made, none is made again."""
    seed, planned = run.experiment.spec.seed, len(proven_ones(live))
    distinct = _distinct(live)
    recorded = {one.case.content_id: run.recorded.find("proof", one.case.id, 0) for one in distinct}
    run.made = Proofs(distinct, {name: record for name, record in recorded.items() if record is not None})

    def count(proofs: int) -> None:
        """So many come that may be more than were planned."""
        nonlocal planned
        run.progress.more(max(0, proofs - planned))
        planned = max(0, planned - proofs)

    count(len(run.made.records))
    run.progress.left_out(len(run.made.records))

    def plan(place: int, one: ReadyCase) -> LaunchPlan:
        return _plan(run, one, "proof", run.folder / "proof" / one.case.content_id, seed, 0, place)

    def tell(kept: Sequence[LaunchRecord], why: Sequence[str]) -> None:
        count(len(kept))
        run.progress.left_out(len(kept))
        if kept or why:
            said = [f"{len(kept)} proof{'s' * (len(kept) > 1)} kept of earlier runs"] if kept else []
            run.progress.next("; ".join([*said, *(f"proven anew: {words}" for words in why)]))

    def launch(
        cases: Sequence[ReadyCase], plans: Sequence[LaunchPlan], keep: Callable[[LaunchRecord], None]
    ) -> Sequence[LaunchRecord]:
        count(len(cases))
        return _prove_these(run, cases, plans, keep)

    run.made.make(run.engine.keeper, run.record.id, plan, launch, tell)
    run.proofs |= run.made.parities()


def _prove_these(
    run: Run,
    cases: Sequence[ReadyCase],
    plans: Sequence[LaunchPlan],
    keep: Callable[[LaunchRecord], None],
) -> list[LaunchRecord]:
    """Nothing is timed: one for each processor at once, and while one is judged, the next one runs. Those of
    a network come together: its judges are made once for all, and judges of a large one take gigabytes. Among
    them frameworks, who may compile for long, take turns with others, who are sooner done than judged."""
    ordered = [one for those in alike(cases, _judged_alike) for one in in_turns(those, is_framework)]
    by_case = {plan.case.id: plan for plan in plans}
    at_once = proofs_at_once(ordered)
    waiting = iter([_words("proof", one, 0) for one in ordered])
    run.progress.next(" and ".join(words for _, words in zip(range(at_once), waiting, strict=False)))

    def done(record: LaunchRecord) -> None:
        run.progress.done(record)
        keep(record)
        run.progress.next(next(waiting, "proofs are judged"))

    placed = [replace(by_case[one.case.id], position=place) for place, one in enumerate(ordered)]
    made = {record.case: record for record in run.engine.together(placed, at_once, done, None)}
    return [made[one.case.id] for one in cases]


def _judged_alike(one: ReadyCase) -> tuple[Hashable, ...]:
    """By the same judges."""
    work = one.case.workload
    return work.network, work.dataset, work.batch_size


def _together(
    run: Run,
    cases: Sequence[ReadyCase],
    purpose: Purpose,
    block: int,
    plan: Callable[[int, ReadyCase], LaunchPlan],
    at_once: int,
    done: Callable[[LaunchRecord], None],
) -> list[tuple[ReadyCase, LaunchRecord]]:
    """Each case with its record: of an earlier session, or of a launch. `plan`: of a place and a case."""
    recorded = {one.case.id: run.recorded.find(purpose, one.case.id, block) for one in cases}
    plans = [plan(place, one) for place, one in enumerate(cases) if recorded[one.case.id] is None]
    run.progress.left_out(len(cases) - len(plans))
    made = iter(run.engine.together(plans, at_once, done, None))
    return [(one, recorded[one.case.id] or next(made)) for one in cases]


def _block(run: Run, cases: Sequence[ReadyCase], purpose: Purpose, block: int, seed: int) -> None:
    """Each case once, in an order of this block; without cases that lack a proof or failed too often."""
    limit = PATIENCE if purpose == "speed" else 1
    for position, one in enumerate(
        shuffled_block(cases, seed=run.experiment.spec.seed, purpose=purpose, block=block)
    ):
        if _can_run(run, one, limit):
            _noted(run, one, _launch(run, one, purpose, seed, block, position))
        else:
            run.progress.left_out()


def _heats(run: Run, cases: Sequence[ReadyCase], block: int) -> None:
    """Each case once, beside those of the same work; without cases that lack a proof or failed too often."""
    able = [one for one in cases if _can_run(run, one, PATIENCE)]
    run.progress.left_out(len(cases) - len(able))
    spec, by_id = run.experiment.spec, {one.case.id: one for one in cases}
    ridden = run.recorded.heats.get(block, [])
    run.progress.left_out(len(ridden))
    for record in ridden:
        _noted(run, by_id[record.case], record)

    def needed(one: ReadyCase) -> int:
        return needed_bytes(run.folder, run.made.giver(one))

    done = {record.case for record in ridden}
    together, *apart = _apart(run, able)
    heats = heats_of(together, spec.measure.reference, needed, available_bytes(), done, mixed=run.mixed)
    heats += [heat for heat in apart if heat[0].case.id not in done]
    for heat in shuffled_block(heats, seed=spec.seed, purpose="heat", block=block):
        _heat(run, heat, block)


def _apart(run: Run, cases: Sequence[ReadyCase]) -> list[list[ReadyCase]]:
    """Those that take turns, and each by itself beside which something goes on."""
    return [
        [one for one in cases if one.case.id not in run.goes_on],
        *([one] for one in cases if one.case.id in run.goes_on),
    ]


def _heat(run: Run, cases: Sequence[ReadyCase], block: int) -> None:
    """The launches of one heat; of a single case, one that is by itself."""
    from timetrial.launch import Course, lengthened, schedule

    if len(cases) < 2:
        _block(run, cases, "speed", block, run.experiment.spec.seed)
        return
    run.recorded.last_heat += 1
    number = run.recorded.last_heat
    rng = random.Random(f"{run.experiment.spec.seed} heat {number}")
    processors = processors_for([one.case for one in cases], rng)
    fewest = run.experiment.sizes.rounds
    rounds = schedule(len(cases), MOST_BLOCKS * fewest, rng)
    shown = run.rounds.setdefault(tuple(one.case.id for one in cases), HeatRounds())
    alone = frozenset(
        side
        for side, one in enumerate(cases)
        if not (is_framework(one) and may_start_beside(one, run.experiment.spec.environment))
        or run.failures.get(one.case.id)  # perhaps for having started elsewhere
    )
    one_by_one = run.experiment.sizes.first_one_by_one and block == 0
    at_once = 1 if one_by_one else side_by_side_at_most(len(cases) - len(alone))
    plans = [
        replace(
            _plan(
                run, one, "speed", run.next_folder(), run.experiment.spec.seed, block, rounds[0].index(side)
            ),
            heat=number,
            heat_size=len(cases),
            at_once=1 if side in alone else at_once,
            processors=processors,
            measure=replace(
                run.measure,
                warmup_ns=run.experiment.sizes.turns_warmup_ns,
                rhythm_ns=RHYTHM_NS if _is_unknown(run, one) else 0,
            ),
        )
        for side, one in enumerate(cases)
    ]
    plans = [replace(plan, environment={**plan.environment, **padding(rng)}) for plan in plans]
    shared = " ".join(f"{key}={value}" for key, value in _shared(cases).items())
    run.progress.next(f"heat {block + 1} · {len(cases)} contenders {shared}".rstrip() + run.so_far)
    course = Course(
        rounds,
        budget_ns=run.experiment.sizes.turns_ns,
        starts_on=starts_on(processors, at_once, rng),
        alone=alone,
        wanted=lambda ridden: shown.wanted(ridden, fewest),
        first=fewest,
        spans={side: run.spans.get(one.case.id, 1) for side, one in enumerate(cases)},
        longer=lengthened(len(rounds), len(cases), rng),
    )
    heat = run.engine.heat(plans, course)
    records = heat.records()
    if heat.ridden is not None and heat.ridden.goes_on:
        run.goes_on |= {cases[side].case.id: words for side, words in heat.ridden.goes_on.items()}
        for plan in plans:  # nobody took a turn
            remove(plan.folder)
        for heat_of in _apart(run, cases):
            _heat(run, heat_of, block)
        return
    if heat.ridden is not None:
        shown.note(heat.ridden)
        run.spans |= {cases[side].case.id: span for side, span in heat.ridden.spans.items()}
    for one, record in zip(cases, records, strict=True):
        run.progress.done(record)
        _noted(run, one, record)


def _is_unknown(run: Run, one: ReadyCase) -> bool:
    """A step of somebody's own of which no heat has told yet over how many steps its time repeats."""
    return is_callable_word(one.case.backend) and one.case.id not in run.spans


def _shared(cases: Sequence[ReadyCase]) -> dict[str, str]:
    """Settings that all of them have."""
    first, *others = (one.case.settings for one in cases)
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}


def _learn(run: Run, pupils: Sequence[ReadyCase], block: int) -> None:
    """One seed of each. Nothing is timed: several learn at once."""
    largest = max((needed_bytes(run.folder, run.made.giver(one)) for one in pupils), default=0)
    at_once = side_by_side(pupils, len(os.sched_getaffinity(0)), largest, available_bytes())
    seed = run.experiment.spec.seed
    ordered = shuffled_block(pupils, seed=seed, purpose="learning", block=block)

    def plan(place: int, one: ReadyCase) -> LaunchPlan:
        return _plan(run, one, "learning", run.next_folder(), seed + block, block, place)

    run.progress.next(f"learning, seed {block + 1}" + (f" · {at_once} at once" if at_once > 1 else ""))
    for one, record in _together(run, ordered, "learning", block, plan, at_once, run.progress.done):
        _noted(run, one, record)


def _noted(run: Run, one: ReadyCase, record: LaunchRecord) -> None:
    """A hang is not tried again: it costs minutes."""
    if record.outcome != "ok":
        more = PATIENCE if record.outcome == "hang" else 1
        run.failures[one.case.id] = run.failures.get(one.case.id, 0) + more


def _can_run(run: Run, one: ReadyCase, limit: int) -> bool:
    """It has a proof, or can have none, and failed in fewer launches than `limit`."""
    return one.case.content_id in run.proofs and run.failures.get(one.case.id, 0) < limit


def _launch(run: Run, one: ReadyCase, purpose: Purpose, seed: int, block: int, position: int) -> LaunchRecord:
    """Or the record of one in an earlier session."""
    recorded = run.recorded.find(purpose, one.case.id, block)
    if recorded is not None:
        run.progress.left_out()
        return recorded
    run.progress.next(_words(purpose, one, block))
    record = run.engine.launch(_plan(run, one, purpose, run.next_folder(), seed, block, position))
    run.progress.done(record)
    return record


def _words(purpose: Purpose, one: ReadyCase, block: int) -> str:
    """Of one launch, for whoever watches."""
    shown = " ".join(f"{key}={value}" for key, value in one.case.settings.items())
    return f"{purpose} {block + 1} · {one.case.backend} {shown}".rstrip()


def _plan(
    run: Run, one: ReadyCase, purpose: Purpose, folder: Path, seed: int, block: int, position: int
) -> LaunchPlan:
    from timetrial.launch import LaunchPlan

    spec = run.experiment.spec
    return LaunchPlan(
        case=one.case,
        prepared=prepare_files(run.engine, one, spec, seed),
        purpose=purpose,
        folder=folder,
        seed=seed,
        block=block,
        position=position,
        measure=run.measure,
        proof=run.proofs.get(one.case.content_id) if seed == spec.seed and purpose != "proof" else None,
        kept=run.made.kept(one) if purpose != "proof" else None,
        environment=spec.environment,
        contender=one.contender,
        goes_on=run.goes_on.get(one.case.id),
    )


def measure_sizes(experiment: Experiment) -> Measure:
    """How long a launch takes, and what limits it."""
    from timetrial.launch import Measure

    sizes, train = experiment.sizes, experiment.spec.train
    return Measure(
        rule=sizes.rule,
        min_ns=sizes.min_ns,
        budget_ns=sizes.budget_ns,
        warmup_ns=sizes.warmup_ns,
        steady_ns=sizes.steady_ns,
        epochs=train.epochs if train else 1,
        most_learning_steps=train.most_steps if train else None,
        limits=limits_of(experiment.spec),
    )
