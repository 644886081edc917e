"""Runs a race: proofs, pairs until a verdict, and every `worse` once more (see statistics/verdict.py)."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from timetrial.analysis.pairs import GATE, judge
from timetrial.analysis.raced import RACED, Ride
from timetrial.cases.budget import Budget
from timetrial.errors import InputError, MeasurementError
from timetrial.experiment.describe import experiment_record, limits_of, prepare_files
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.memory import proofs_at_once, room_for_all
from timetrial.experiment.open_files import ensure_open_files
from timetrial.experiment.places import padding, processors_for
from timetrial.experiment.resume import (
    as_begun,
    begin_again,
    check_resumable,
    experiment_of,
    look_at_unfinished,
    session,
)
from timetrial.experiment.validate import ReadyCase, validate
from timetrial.progress import QuietProgress, progress, say
from timetrial.races.side import check_sides
from timetrial.records import race as records
from timetrial.records import sessions, store
from timetrial.records.files import near
from timetrial.records.metric import METRICS, Metric
from timetrial.records.model import ExperimentRecord, LaunchRecord, Parity
from timetrial.records.race import PairRecord, RaceEnd, RaceRecord, RuleRecord, Stage
from timetrial.results.names import side_names
from timetrial.results.race import Race, so_far
from timetrial.results.results import LaunchFiles
from timetrial.statistics.verdict import DIFFERENT, Rule, Verdict

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan
    from timetrial.records.model import Purpose

ROUNDS = 8
MOST_VOID = 3  # pairs that a failing side may cost before the race ends
WARMUP_NS = 200_000_000  # at most; it ends as soon as the steps are steady


class RaceInterrupted(KeyboardInterrupt):
    """Ctrl-C: every contender is gone; `race` holds the pairs that had ended. A notebook shows the words."""

    def __init__(self, race: Race):
        folder = str(near(race.folder))
        said = "; ".join(f"{duel.challenger}: {duel.reason or 'its verdict stood'}" for duel in race.duels)
        super().__init__(f"{said}. tt.load({folder!r}) shows it; tt.resume({folder!r}) does the rest.")
        self.race = race


class RaceStoppedError(MeasurementError):
    """The instrument could not go on: the disk is full, say. `race` holds the pairs that had ended."""

    def __init__(self, words: str, race: Race):
        super().__init__(words)
        self.race = race


@dataclass
class _Ride:
    """The state of a race."""

    experiment: Experiment
    engine: Engine
    folder: Path
    rule: Rule
    metric: Metric
    sides: list[ReadyCase]  # that can take part, the base first
    names: dict[str, str]  # by case id
    progress: QuietProgress
    isolated: bool
    budget: Budget
    rounds: int = ROUNDS
    next_pair: int = 0  # number of its folder
    proofs: dict[str, Parity | None] = field(default_factory=dict)  # by content id
    pairs: list[PairRecord] = field(default_factory=list)

    def log_ratios(self, challenger: str, stage: Stage) -> list[float]:
        """Of the pairs that count, in order."""
        return [
            one.log_ratios[challenger][GATE]
            for one in self.pairs
            if one.stage == stage and one.void is None and challenger in one.log_ratios
        ]

    @property
    def void(self) -> list[PairRecord]:
        """Pairs in which a side failed."""
        return [one for one in self.pairs if one.void is not None]


def run_race(
    experiment: Experiment,
    results: Path,
    *,
    metric: Metric = "step_time",
    rule: Rule | None = None,
    confirm: bool = True,
    confirms: Sequence[Verdict] = DIFFERENT,
    isolated: bool = False,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Race:
    """Races the cases of an experiment against the first of them. `confirm`: a verdict of `confirms` is raced
    once more before it is said.

    Raises InputError before anything starts, RaceInterrupted on Ctrl-C, RaceStoppedError if records can no
    longer be kept. A side that cannot be raced is no error: the race says why it has no verdict.
    """
    engine, rule = engine or real_engine(), rule or Rule()
    check_sides([one.case for one in experiment.cases], metric)
    ensure_open_files(len(experiment.cases))
    ready = validate(experiment.cases, engine)
    store.check_writable(results)
    with engine.lock():
        same = look_at_unfinished(results, experiment, "race", lambda one: records.read_race(one).experiment)
        say(same, quiet=quiet)
        described = experiment_record(experiment, ready, engine, peaks=False)
        folder = store.new_folder(results)
        asked = _options(metric, rule, confirm=confirm, isolated=isolated)
        described = described.model_copy(
            update={"id": folder.name, "half_width": None, "again": _again(experiment, folder, asked)}
        )
        names = side_names(described.cases)
        with session(folder), progress(quiet=quiet) as bar:
            budget = Budget(experiment.spec.measure.budget)
            ride = _Ride(experiment, engine, folder, rule, metric, list(ready), names, bar, isolated, budget)
            return _raced(ride, described, confirms if confirm else ())


def resume_race(folder: Path, *, quiet: bool = False, engine: Engine | None = None) -> Race:
    """Goes on with a race that was ended: proofs and pairs that have a record are not repeated. Raises as
    run_race() does; InputError also where it was decided, or this is another machine."""
    engine = engine or real_engine()
    before = Race(folder)
    check_resumable(folder, "race")
    if before.damaged_pairs:
        raise InputError(f"{before.damaged_pairs[0]} Remove the pair's folder to have it raced again.")
    record = before.record
    experiment = experiment_of(record.experiment)
    ensure_open_files(len(experiment.cases))
    ready = as_begun(record.experiment, validate(experiment.cases, engine))
    with engine.lock(), session(folder), progress(quiet=quiet) as bar:
        begin_again(folder, record.experiment, engine.machine())
        records.remove_end(folder)
        ride = _Ride(
            experiment,
            engine,
            folder,
            before.rule,
            record.metric,
            list(ready),
            before.names,
            bar,
            record.isolated,
            Budget(experiment.spec.measure.budget, before.seconds or 0.0),
            rounds=record.rounds,
            next_pair=records.next_pair(folder),
            pairs=before.pairs,
        )
        return _raced(
            ride, record.experiment, record.confirms if record.confirm else (), before.seconds or 0.0
        )


def _raced(
    ride: _Ride, described: ExperimentRecord, confirms: Sequence[Verdict], seconds: float = 0.0
) -> Race:
    """`seconds`: that earlier sessions took."""
    began = time.monotonic() - seconds
    try:
        end = _ride(ride, described, confirms)
    except KeyboardInterrupt:
        end = RaceEnd(stop_reason="interrupted", seconds=time.monotonic() - began)
        if not records.is_race(ride.folder):
            raise
        records.write_end(ride.folder, end)
        raise RaceInterrupted(Race(ride.folder)) from None
    except MeasurementError as error:
        if not records.is_race(ride.folder):
            raise
        raise RaceStoppedError(str(error), Race(ride.folder)) from error
    records.write_end(ride.folder, end.model_copy(update={"seconds": time.monotonic() - began}))
    return Race(ride.folder)


def _options(metric: Metric, rule: Rule, *, confirm: bool, isolated: bool) -> str:
    """Those of `timetrial race` that are not as they are without asking."""
    usual = Rule()
    words = [] if metric == "step_time" else [f"--metric {metric}"]
    words += [] if rule.min_effect == usual.min_effect else [f"--min-effect {rule.min_effect:g}"]
    words += [] if rule.equivalence == usual.equivalence else [f"--equivalence {rule.equivalence:g}"]
    words += [] if confirm else ["--no-confirm"]
    words += ["--isolated"] if isolated else []
    return "".join(f" {word}" for word in words)


def _again(experiment: Experiment, folder: Path, options: str) -> str:
    if experiment.again is None:  # made in Python: its folder has all that was asked
        return f"timetrial race {near(folder)}"
    return experiment.again_with("race") + options


def _ride(ride: _Ride, described: ExperimentRecord, confirms: Sequence[Verdict]) -> RaceEnd:
    refused = _prove_all(ride)
    if not records.is_race(ride.folder):
        _write_race(ride, described, confirms)
    base = described.cases[0].id
    ride.budget.begin()
    if len(ride.sides) < 2 or ride.sides[0].case.id != base:
        return RaceEnd(stop_reason="not raced", reason="; ".join(refused), seconds=0)
    ended = _until_decided(ride, "judge", [one.case.id for one in ride.sides[1:]])
    for one in ride.sides[1:]:
        first = judge(ride.log_ratios(one.case.id, "judge"), ride.rule, METRICS[ride.metric].good)
        if ended is None and first is not None and first.verdict in confirms:
            ended = _until_decided(ride, "confirm", [one.case.id])
    if ended is not None:
        why, words = ended
        return RaceEnd(stop_reason=why, reason=words, seconds=0)
    return RaceEnd(stop_reason="decided", reason="; ".join(refused) or None, seconds=0)


def _write_race(ride: _Ride, described: ExperimentRecord, confirms: Sequence[Verdict]) -> None:
    """Where memory does not hold the sides together, they are raced apart."""
    why = None if ride.isolated or len(ride.sides) < 2 else room_for_all(ride.folder, ride.sides, ride.names)
    ride.isolated = ride.isolated or why is not None
    records.write_race(
        ride.folder,
        RaceRecord(
            experiment=described,
            metric=ride.metric,
            rule=RuleRecord(**{**vars(ride.rule), "looks": list(ride.rule.looks)}),
            rounds=ride.rounds,
            confirm=bool(confirms),
            confirms=tuple(confirms),
            isolated=ride.isolated,
            why_isolated=why,
        ),
    )


def _prove_all(ride: _Ride) -> list[str]:
    """Leaves in `sides` those that may be raced; says of the others why not. Equal sides share a proof."""
    failed: dict[str, str] = {}  # by content id: why
    plans: dict[str, LaunchPlan] = {}  # by content id: of those that have no record of an earlier session
    planned: list[ReadyCase] = []
    for position, one in enumerate(ride.sides):
        name, folder = one.case.content_id, ride.folder / "proof" / one.case.content_id
        if one.unavailable is not None:
            failed[name] = f"unavailable: {one.unavailable}"
        elif name not in plans and not (folder / store.RECORD_FILE).is_file():
            plans[name] = _plan(ride, one, "proof", folder, 0, position, {})
            planned.append(one)
    if plans:
        ride.progress.next("proofs")
        ride.engine.together(list(plans.values()), proofs_at_once(planned), lambda record: None)
    for name in {one.case.content_id: one for one in ride.sides if one.case.content_id not in failed}:
        record = store.read_launch(ride.folder / "proof" / name)
        if record.outcome == "ok":
            ride.proofs[name] = record.parity
        else:
            failed[name] = f"{record.outcome}: {record.reason}"
    refused = [
        f"{ride.names[one.case.id]} is {failed[one.case.content_id]}"
        for one in ride.sides
        if one.case.content_id in failed
    ]
    ride.sides = [one for one in ride.sides if one.case.content_id not in failed]
    return refused


def _until_decided(
    ride: _Ride, stage: Stage, challengers: list[str]
) -> tuple[Literal["voids", "budget"], str] | None:
    """Pairs until each challenger has a decision. Why it ended before that, or None."""
    good = METRICS[ride.metric].good
    while True:
        if len(ride.void) >= MOST_VOID:
            words = f"{len(ride.void)} of {len(ride.pairs)} pairs are void; the last: {ride.void[-1].void}"
            return "voids", words
        waiting = [one for one in challengers if judge(ride.log_ratios(one, stage), ride.rule, good) is None]
        if not waiting:
            return None
        if ride.pairs and not ride.budget.allows_another():
            return "budget", f"its time was over after {len(ride.pairs)} pairs"
        done = len([one for one in ride.pairs if one.stage == stage and one.void is None])
        words = "pair" if stage == "judge" else "confirming, pair"
        shown = [so_far(ride.log_ratios(one, stage), ride.rule) for one in waiting]
        seen = "".join(f" · {one}" for one in shown if one)
        ride.progress.next(f"{words} {done + 1} of at most {ride.rule.most_pairs}{seen}")
        sides = [one for one in ride.sides if one is ride.sides[0] or one.case.id in waiting]
        pair = _pair(ride, sides, stage)
        records.write_pair(ride.folder, pair)
        ride.pairs.append(pair)
        ride.progress.done(None)


def _pair(ride: _Ride, sides: Sequence[ReadyCase], stage: Stage) -> PairRecord:
    from timetrial.launch import Course, schedule

    sessions.check_there(ride.folder)
    number, ride.next_pair = ride.next_pair, ride.next_pair + 1
    rng = random.Random(f"{ride.experiment.spec.seed} {stage} {number}")
    processors = processors_for([one.case for one in sides], rng)
    plans = []
    for position, one in enumerate(sides):
        folder = records.pair_folder(ride.folder, number) / one.case.id
        plan = _plan(ride, one, "race", folder, number, position, padding(rng))
        plans.append(replace(plan, processors=processors))
    order = schedule(len(sides), ride.rounds, rng)
    if ride.isolated:
        alone = {side: ride.engine.heat([plans[side]], Course([(0,)] * ride.rounds)) for side in order[0]}
        launches = [alone[side][0] for side in range(len(sides))]
    else:
        launches = ride.engine.heat(plans, Course(order))
    ratios, void = _compared(ride, sides, plans, launches)
    return PairRecord(
        number=number,
        stage=stage,
        sides=[one.case.id for one in sides],
        rounds=[list(one) for one in order],
        processors=sorted(processors) if processors else None,
        log_ratios=ratios,
        void=void,
    )


def _compared(
    ride: _Ride, sides: Sequence[ReadyCase], plans: Sequence[LaunchPlan], launches: Sequence[LaunchRecord]
) -> tuple[dict[str, dict[str, float]], str | None]:
    """By challenger and statistic: ln(challenger / base); or why the pair is void."""
    failed = next((k for k, one in enumerate(launches) if one.outcome != "ok"), None)
    if failed is not None:
        one = launches[failed]
        return {}, f"{ride.names[sides[failed].case.id]}: {one.outcome}: {one.reason}"
    found = {}
    try:
        for k in range(1, len(sides)):
            base, challenger = (
                Ride(
                    launches[j],
                    LaunchFiles(launches[j], plans[j].folder).steps,
                    sides[j].case.workload.batch_size,
                )
                for j in (0, k)
            )
            found[sides[k].case.id] = RACED[ride.metric].log_ratios(base, challenger)
    except ValueError as error:
        return {}, str(error)
    return found, None


def _plan(
    ride: _Ride,
    one: ReadyCase,
    purpose: Purpose,
    folder: Path,
    block: int,
    position: int,
    environment: dict[str, str],
) -> LaunchPlan:
    from timetrial.launch import LaunchPlan, Measure

    spec = ride.experiment.spec
    return LaunchPlan(
        case=one.case,
        prepared=prepare_files(ride.engine, one, spec, spec.seed),
        purpose=purpose,
        folder=folder,
        seed=spec.seed,
        block=block,
        position=position,
        measure=Measure(warmup_ns=WARMUP_NS, limits=limits_of(spec)),
        proof=ride.proofs.get(one.case.content_id) if purpose != "proof" else None,
        environment={**spec.environment, **environment},
        contender=one.contender,
    )
