"""Runs a race: proofs, pairs until a verdict, and every `worse` once more (see statistics/verdict.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from timetrial.analysis.pairs import GATE
from timetrial.analysis.raced import lacking
from timetrial.cases.budget import Budget
from timetrial.contenders.revisions import described
from timetrial.errors import InputError, MeasurementError
from timetrial.experiment.allocator import with_settled_allocator
from timetrial.experiment.describe import experiment_record
from timetrial.experiment.engine import Engine, real_engine
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.memory import fit_twice, proofs_at_once, room_for_all
from timetrial.experiment.open_files import ensure_open_files
from timetrial.experiment.resume import (
    as_begun,
    begin_again,
    check_resumable,
    experiment_of,
    look_at_unfinished,
    session,
)
from timetrial.experiment.validate import ReadyCase, validate
from timetrial.heats.heat import OutOfTimeError
from timetrial.in_process.caller import not_carried
from timetrial.progress import progress, say
from timetrial.proving.sharing import Proofs
from timetrial.races.pair import plan_of, start_pair
from timetrial.races.rounds import FEWEST
from timetrial.races.side import check_sides, check_trees
from timetrial.races.sofar import progress_words
from timetrial.races.state import RaceState
from timetrial.records import race as records
from timetrial.records import store
from timetrial.records.files import near
from timetrial.records.metric import Metric
from timetrial.records.model import ExperimentRecord, LaunchRecord
from timetrial.records.race import RaceEnd, RaceRecord, RuleRecord, Stage
from timetrial.results.names import side_names
from timetrial.results.race import Race
from timetrial.statistics.trimmed import FEWEST as LEAST_PAIRS
from timetrial.statistics.verdict import DIFFERENT, Rule, Verdict

if TYPE_CHECKING:
    from timetrial.launch import LaunchPlan

MOST_VOID = 3  # pairs that a failing side may cost before the race ends


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


def run_race(
    experiment: Experiment,
    results: Path,
    *,
    metric: Metric = "step_time",
    rule: Rule | None = None,
    confirm: bool = True,
    confirms: Sequence[Verdict] = DIFFERENT,
    isolated: bool = False,
    extends: bool = False,
    prove_again: bool = False,
    quiet: bool = False,
    engine: Engine | None = None,
) -> Race:
    """Races the cases of an experiment against the first of them. `confirm`: a verdict of `confirms` is raced
    once more before it is said. `extends`: the budget doubles, once, where only that is missing when it is
    over. `prove_again`: no proof of an earlier run counts.

    Raises InputError before anything starts, RaceInterrupted on Ctrl-C, RaceStoppedError if records can no
    longer be kept. A side that cannot be raced is no error: the race says why it has no verdict.
    """
    engine, rule = engine or real_engine(), rule or Rule()
    engine = engine.proving_again() if prove_again else engine
    check_sides([one.case for one in experiment.cases], metric)
    if metric != "peak_memory":  # what an allocator keeps, the process holds
        experiment = with_settled_allocator(experiment)
    ensure_open_files(len(experiment.cases))
    ready = validate(experiment.cases, engine)
    check_trees(ready)
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
            state = RaceState(
                experiment, engine, folder, rule, metric, list(ready), names, bar, isolated, budget,
                confirms if confirm else (), extends=extends,
            )  # fmt: skip
            return _raced(state, described)


def resume_race(folder: Path, *, quiet: bool = False, engine: Engine | None = None) -> Race:
    """Goes on with a race that was ended: proofs and pairs that have a record are not repeated. Raises as
    run_race() does; InputError also where it was decided, or this is another machine."""
    engine = engine or real_engine()
    before = Race(folder)
    check_resumable(folder, "race")
    if before.damaged_pairs:
        raise InputError(f"{before.damaged_pairs[0]} Remove the pair's folder to have it raced again.")
    record = before.record
    if record.rule.gate != GATE:
        raise InputError(
            f"{near(folder)} was begun by a version that compared medians; pairs of now compare the time per "
            f"step over whole turns. Race it anew: timetrial race {near(folder)}."
        )
    experiment = experiment_of(record.experiment)
    ensure_open_files(len(experiment.cases))
    ready = as_begun(record.experiment, validate(experiment.cases, engine))
    with engine.lock(), session(folder), progress(quiet=quiet) as bar:
        begin_again(folder, record.experiment, engine.machine())
        records.remove_end(folder)
        state = RaceState(
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
            record.confirms if record.confirm else (),
            goes_on=record.goes_on,
            extends=record.extends,
            next_pair=records.next_pair(folder),
            pairs=before.pairs,
        )
        return _raced(state, record.experiment, before.seconds or 0.0)


def _raced(state: RaceState, described: ExperimentRecord, seconds: float = 0.0) -> Race:
    """`seconds`: that earlier sessions took."""
    began = time.monotonic() - seconds
    try:
        with _ended(state):
            end = _ride(state, described)
    except KeyboardInterrupt:
        end = RaceEnd(stop_reason="interrupted", seconds=time.monotonic() - began)
        if not records.is_race(state.folder):
            raise
        records.write_end(state.folder, end)
        raise RaceInterrupted(Race(state.folder)) from None
    except MeasurementError as error:
        if not records.is_race(state.folder):
            raise
        raise RaceStoppedError(str(error), Race(state.folder)) from error
    records.write_end(state.folder, end.model_copy(update={"seconds": time.monotonic() - began}))
    return Race(state.folder)


@contextmanager
def _ended(state: RaceState) -> Iterator[None]:
    """Behind it no launch is left. Of an interrupted race the pair whose rounds were over becomes a
    record."""
    try:
        yield
    except KeyboardInterrupt:
        _end_pair(state)
        raise
    finally:
        if state.under_way is not None:
            state.under_way.cancel()


def _options(metric: Metric, rule: Rule, *, confirm: bool, isolated: bool) -> str:
    """Those of `timetrial race` that are not as they are without asking."""
    usual = Rule()
    words = [] if metric == "step_time" else [f"--metric {metric}"]
    words += [] if rule.min_effect == usual.min_effect else [f"--min-effect {rule.min_effect:g}"]
    words += [] if rule.equivalence == usual.equivalence else [f"--equivalence {rule.equivalence:g}"]
    words += [] if rule.most_pairs == usual.most_pairs else [f"--most-pairs {rule.most_pairs}"]
    words += [] if confirm else ["--no-confirm"]
    words += ["--isolated"] if isolated else []
    return "".join(f" {word}" for word in words)


def _again(experiment: Experiment, folder: Path, options: str) -> str:
    if experiment.again is None:  # made in Python: its folder has all that was asked
        return f"timetrial race {near(folder)}"
    return experiment.again_with("race") + options


def _ride(state: RaceState, described: ExperimentRecord) -> RaceEnd:
    try:
        refused = _prove_all(state)
    except OutOfTimeError:
        if not records.is_race(state.folder):
            _write_race(state, described, None)
        words = "its time was over before each side had started and taken a step: give it more (budget)"
        return RaceEnd(stop_reason="budget", reason=words, seconds=0)
    if not records.is_race(state.folder):
        warnings = [*described.warnings, *dict.fromkeys(state.not_carried)]
        crowded = not state.isolated and len(state.sides) > 1
        givers = {state.names[one.case.id]: state.made.giver(one) for one in state.sides}
        why = room_for_all(state.folder, givers) if crowded else None
        _write_race(state, described.model_copy(update={"warnings": warnings}), why)
    state.overlaps = not state.isolated and fit_twice(state.folder, [*map(state.made.giver, state.sides)])
    base = described.cases[0].id
    state.budget.begin()
    if len(state.sides) < 2 or state.sides[0].case.id != base:
        return RaceEnd(stop_reason="not raced", reason="; ".join(refused), seconds=0)
    ended = _until_decided(state, "judge", [one.case.id for one in state.sides[1:]])
    for one in state.sides[1:]:
        first = state.decision(one.case.id, "judge")
        if first is not None and first.verdict in state.confirms and (ended is None or state.extends):
            later = _until_decided(state, "confirm", [one.case.id])
            ended = ended or later
    if ended is not None:
        why, words = ended
        return RaceEnd(stop_reason=why, reason=words, seconds=0, extended=state.extended)
    reason = "; ".join(refused) or None
    return RaceEnd(stop_reason="decided", reason=reason, seconds=0, extended=state.extended)


def _write_race(state: RaceState, described: ExperimentRecord, why: str | None) -> None:
    """`why`: memory does not hold the sides together, so they are raced apart."""
    state.isolated = state.isolated or why is not None
    records.write_race(
        state.folder,
        RaceRecord(
            experiment=described,
            metric=state.metric,
            rule=_rule_record(state.rule),
            rounds=FEWEST,
            confirm=bool(state.confirms),
            confirms=tuple(state.confirms),
            isolated=state.isolated,
            why_isolated=why,
            extends=state.extends,
            trees=_trees(state.sides),
        ),
    )


def _trees(sides: Sequence[ReadyCase]) -> dict[str, str]:
    """The checkout of each side, where one is of a revision."""
    trees = {one.case.id: one.contender.tree if one.contender else None for one in sides}
    here = next((tree.instead_of for tree in trees.values() if tree), None)
    return {case: described(tree.folder if tree else here) for case, tree in trees.items() if here}


def _rule_record(rule: Rule) -> RuleRecord:
    """What a record says of a rule."""
    return RuleRecord(
        min_effect=rule.min_effect,
        equivalence=rule.equivalence,
        looks=list(rule.looks),
        confidence=rule.confidence,
        errors=list(rule.errors),
        trim=rule.trim,
        gate=GATE,
    )


def _prove_all(state: RaceState) -> list[str]:
    """Leaves in `sides` those that may be raced; says of the others why not. Sides that differ in nothing
    that changes what is computed share a proof."""
    failed: dict[str, str] = {}  # by content id: why
    live: dict[str, ReadyCase] = {}  # by content id
    for one in state.sides:
        if one.unavailable is not None:
            failed[one.case.content_id] = f"unavailable: {one.unavailable}"
        else:
            live.setdefault(one.case.content_id, one)
    folders = {name: state.folder / "proof" / name for name in live}
    there = {name: place for name, place in folders.items() if (place / store.RECORD_FILE).is_file()}
    recorded = {name: store.read_launch(place) for name, place in there.items()}
    state.made = Proofs([*live.values()], recorded)

    def plan(place: int, one: ReadyCase) -> LaunchPlan:
        return plan_of(state, one, "proof", folders[one.case.content_id], 0, place, {})

    def tell(kept: Sequence[LaunchRecord], why: Sequence[str]) -> None:
        said = [f"{len(kept)} kept of earlier runs"] if kept else []
        state.progress.next("; ".join(["proofs", *said, *(f"anew: {words}" for words in why)]))

    def launch(
        cases: Sequence[ReadyCase], plans: Sequence[LaunchPlan], keep: Callable[[LaunchRecord], None]
    ) -> Sequence[LaunchRecord]:
        return state.engine.together(plans, proofs_at_once(cases), keep, state.budget.left_s)

    state.made.make(state.engine.keeper, state.folder.name, plan, launch, tell)
    for name, one in live.items():
        record = state.made.of(one)
        assert record is not None
        state.not_carried += not_carried(one.case, record)
        lack = lacking(state.metric, record, one.case.workload.batch_size)
        if lack is not None and record.outcome == "ok":
            failed[name] = lack
        elif record.outcome == "ok":
            state.proofs[name] = record.parity
        else:
            failed[name] = f"{record.outcome}: {record.reason}"
    refused = [
        f"{state.names[one.case.id]} is {failed[one.case.content_id]}"
        for one in state.sides
        if one.case.content_id in failed
    ]
    state.sides = [one for one in state.sides if one.case.content_id not in failed]
    return refused


def _until_decided(
    state: RaceState, stage: Stage, challengers: list[str]
) -> tuple[Literal["voids", "budget"], str] | None:
    """Pairs until each challenger has a decision. Why it ended before that, or None.

    The launches of a pair end while those of the next one start, where there will be a next one whatever the
    pair says.
    """
    while True:
        is_over = state.cut_off or (
            bool(state.pairs or state.under_way) and not state.budget.allows_another()
        )
        if is_over and stage == "confirm" and state.extends and not state.extended:
            state.budget.double()
            state.extended, state.cut_off, is_over = True, False, False
        if is_over or not _another_is_certain(state, stage, challengers):
            _end_pair(state, look=is_over)
        if len(state.void) >= MOST_VOID:
            words = f"{len(state.void)} of {len(state.pairs)} pairs are void; the last: {state.void[-1].void}"
            return "voids", words
        waiting = [one for one in challengers if state.decision(one, stage) is None]
        if not waiting:
            _end_pair(state)
            return None
        if is_over:
            done = len(state.pairs)
            if done == 0:
                return "budget", "its time was over within the first pair: give it more (budget)"
            cut = " and within the next" if state.cut_off else ""
            return "budget", f"its time was over after {done} pair{'s' if done != 1 else ''}{cut}"
        state.progress.next(progress_words(state, stage, waiting))
        sides = [one for one in state.sides if one is state.sides[0] or one.case.id in waiting]
        try:
            state.under_way = start_pair(state, sides, stage, started=lambda: _end_pair(state))
        except OutOfTimeError:
            state.cut_off = True


def _another_is_certain(state: RaceState, stage: Stage, challengers: list[str]) -> bool:
    """Whether another pair follows the one that is under way, whatever that one says: no look comes behind
    it, nor anything else that may end the race, and memory holds the sides twice."""
    counts = {len(state.log_ratios(one, stage)) + 1 for one in challengers}
    may_end = state.void or counts & set(state.rule.looks) or _is_half_time(state, stage)
    return state.overlaps and not may_end


def _is_half_time(state: RaceState, stage: Stage) -> bool:
    """Whether the clock asks for a look so that time is left to confirm what it finds."""
    if stage != "judge" or not state.confirms or not state.budget.half_is_over:
        return False
    pairs, looks = len(state.counting(stage)) + 1, state.rule.looks
    # Not in the place of the last look, behind which nothing follows.
    is_early = pairs >= LEAST_PAIRS and len(looks) > 1 and pairs <= looks[-2]
    return is_early and not any(one.look for one in state.counting(stage))


def _end_pair(state: RaceState, *, look: bool = False) -> None:
    """The pair that is under way, if any, becomes a record."""
    if state.under_way is None:
        return
    look = look or _is_half_time(state, state.under_way.stage)
    pair = state.under_way.ended(state, look=look)
    state.under_way = None
    records.write_pair(state.folder, pair)
    state.pairs.append(pair)
    state.progress.done(None)
