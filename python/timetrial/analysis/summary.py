"""One row per case: everything that the table and the JSON of `run` say, from the records of its launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from timetrial.analysis.cpus import cpus_used, idle_threads
from timetrial.analysis.distribution import Distribution
from timetrial.analysis.growth import growth_of
from timetrial.analysis.heats import Level, TurnTimes, levels_of
from timetrial.analysis.learning import with_accuracy
from timetrial.analysis.page_faults import unequal_page_faults
from timetrial.analysis.phases import Phases, typical, typical_start
from timetrial.analysis.precision import too_wide
from timetrial.analysis.ratios import Parts, speed_of, with_letters, with_ratios, with_step_times
from timetrial.analysis.sameness import unequal_steps
from timetrial.analysis.step_times import StepTimes
from timetrial.analysis.taken_home import RowSettings
from timetrial.analysis.used import lean_by_sharing
from timetrial.cautions import Caution, Remark
from timetrial.lengths.rows import SequenceRow
from timetrial.observing.disturbances import noise
from timetrial.records.model import TIMED, CaseRecord, ExperimentRecord, LaunchRecord, Parity, Setting
from timetrial.records.proven import content_of, proof_of
from timetrial.records.reference import default_reference, facts_of, matches
from timetrial.statistics.accuracy import Discordance
from timetrial.statistics.dispersion import two_levels
from timetrial.statistics.growth import Change
from timetrial.statistics.intervals import Estimate, positive_location
from timetrial.statistics.steady import across_launches
from timetrial.toml import as_values


@dataclass(frozen=True, repr=False)
class Launch:
    """A launch as the analysis sees it. `times`: of its steady steps, None where it has none."""

    record: LaunchRecord  # as it was written
    times: StepTimes | None = None  # step times, of a launch that was timed
    folder: str = ""  # that has its files
    phases: Phases = field(default_factory=Phases)  # what comes before the steady steps
    # Of one that learned: predicted and true class of every test image (2, images).
    answers: npt.NDArray[np.int32] | None = field(default=None, compare=False)
    turns: TurnTimes | None = field(default=None, compare=False)  # None: it was alone
    level: Level | None = None  # in the quiet rounds of its heat
    change: Change | None = None  # of a step of the user's own, from some call on

    def __repr__(self) -> str:
        return f"Launch({self.record!r} in '{self.folder}')"

    @property
    def step_time_ns(self) -> float | None:
        """All time of its steady part over its steps; in a heat, of the rounds quiet for others. None: it has
        none."""
        if self.times is None:
            return None
        return self.times.wall_per_step_ns if self.level is None else self.level.step_ns

    @property
    def median_step_ns(self) -> float | None:
        """The median step of the same time."""
        if self.times is None:
            return None
        return self.times.median.estimate if self.level is None else self.level.median_ns

    @property
    def counts(self) -> bool:
        """Whether its step time is one of those that the step time of its case is estimated from."""
        return self.times is not None and self.record.outcome in ("ok", "mismatch")


@dataclass(frozen=True, repr=False)
class Row:
    """A case with all that was found out. None: not measured, or it cannot be known."""

    case: CaseRecord  # what was asked
    outcome: str | None  # None: no launch of it finished (interrupted)
    reason: str | None  # why it is not ok, in words
    outcomes: dict[str, int]  # outcome -> how many launches ended so
    asked: int  # speed launches asked
    ok: int  # speed launches that are ok
    reference: str | None  # id of the case it is compared with; its own id if it is a reference
    step_time_ns: Estimate | None = None  # all time over all steps, while nobody disturbs
    ratio: Estimate | None = None  # this case over its reference: below 1 is faster
    scatter_parts: Parts | None = None  # of its ratios
    alike: str | None = None  # letters: rows of the same work that share one cannot be told apart
    samples_per_s: Estimate | None = None  # samples of a step over the step time
    sequences: SequenceRow | None = None  # their steps that count; None: it reads no lengths
    mean_over_median: float | None = None  # the step time over the median step
    percent_of_peak: float | None = None  # of the f32 multiply-add peak, by nominal work
    peak_memory_bytes: int | None = None  # without mapped files, where the records know
    resident_peak_bytes: int | None = None  # with them
    accuracy: Estimate | None = None  # of all rows that were proven to compute the same, if it is pooled
    accuracy_with: tuple[str, ...] = ()  # ids of the cases that `accuracy` is of together
    accuracy_own: Estimate | None = None  # of this row alone
    accuracy_from: str | None = None  # id of the case that learned for it
    accuracy_against: Discordance | None = None  # this row's answers against its reference's
    parity: Parity | None = None  # what the proof said; None: there was none
    proof_from: str | None = None  # id of the case whose proof it is, where it is another's
    proof_kept: LaunchRecord | None = None  # the proof, where it was made in an earlier run
    reported: list[Setting] = field(default_factory=list)  # settings, as asked and as in force
    stop_reason: str | None = None  # why measuring ended
    steady: str | None = None  # a label of steady.py, or `inconsistent`; None: no launch could tell
    warnings: Counter[str] = field(default_factory=Counter)  # how many launches say each; 1: of the row
    phases: Phases = field(default_factory=Phases)  # of timed launches, what was compiled before at hand
    cold: Phases = field(default_factory=Phases)  # of the proof, with nothing compiled before
    launches: list[Launch] = field(default_factory=list)  # all that finished, with what their stamps say

    def __repr__(self) -> str:
        from timetrial.report.table import row_words

        return f"Row({self.case!r}: {row_words(self)})"

    @cached_property
    def settings(self) -> RowSettings:
        """As asked and as in force; as variables, an experiment or a command to take home."""
        return RowSettings(self.reported, self.case)

    @property
    def facts(self) -> dict[str, str]:
        """What its contender says of what it built: versions of libraries, kernels, ways through layers."""
        return next((one.record.facts for one in self.launches if one.record.purpose in TIMED), {})

    @property
    def accuracy_rows(self) -> int:
        """How many rows `accuracy` is of."""
        return max(1, len(self.accuracy_with))

    @property
    def warning_lines(self) -> list[str]:
        """Its warnings, each with its launches where several say it."""
        return [f"{text} ({n} launches)" if n > 1 else text for text, n in self.warnings.items()]

    @cached_property
    def cpus_used(self) -> float | None:
        """CPU time over wall time while steady."""
        return cpus_used(self.launches)

    @cached_property
    def median_step_ns(self) -> Estimate | None:
        """The median step of the same time as `step_time_ns`, over launches: what bursts do not move."""
        if self.step_time_ns is None:
            return None
        counted = (one.median_step_ns for one in speed_of(self.launches) if one.counts)
        return positive_location([step_ns for step_ns in counted if step_ns])

    @property
    def is_reference(self) -> bool:
        """Whether other rows are compared with this one."""
        return self.reference == self.case.id

    @cached_property
    def distribution(self) -> Distribution | None:
        """How its steps scatter; None where it has no step time."""
        if self.step_time_ns is None:
            return None
        counted = [one for one in speed_of(self.launches) if one.counts]
        times = [one.times for one in counted if one.times]
        return Distribution.of(times, [step_ns for one in counted if (step_ns := one.step_time_ns)])


@dataclass(frozen=True)
class Summary:
    """All rows, what they are compared with, and what should be said about the whole."""

    rows: list[Row]
    reference: dict[str, Any] | None
    remarks: list[Remark]


def summarize(experiment: ExperimentRecord, launches: Sequence[Launch]) -> Summary:
    """Rows in the order of the experiment's cases."""
    by_case: dict[str, list[Launch]] = {case.id: [] for case in experiment.cases}
    launches = with_levels(launches)
    for launch in launches:
        by_case.setdefault(launch.record.case, []).append(launch)
    # The proof of one may count for others: repetitions (A/A), and cases with other threads, say.
    proofs = {one.record.case: one for one in launches if one.record.purpose == "proof"}
    outcomes = {case: str(one.record.outcome) for case, one in proofs.items()}
    givers = {case.id: proof_of(case, experiment.cases, outcomes) for case in experiment.cases}
    for case in experiment.cases:
        giver = givers[case.id]
        if giver is not None and giver != case.id:
            by_case[case.id] = [proofs[giver], *by_case[case.id]]
    rows = with_step_times([_row(case, by_case[case.id], experiment) for case in experiment.cases])
    fixed, warnings = choose_reference(experiment, rows)
    compared = with_letters(with_accuracy(with_ratios(rows, fixed) if fixed else rows))
    restless = noise([launch.record for launch in launches])
    unequal = unequal_steps([(case.who, one.record) for case in experiment.cases for one in by_case[case.id]])
    wide = too_wide(compared, experiment.half_width)
    short = _cut_short(experiment, compared)
    before = map(Remark, [*experiment.warnings, *short, *warnings, *unequal])
    said = [*before, *restless, *map(Remark, [*wide, *idle_threads(compared)])]
    return Summary(compared, fixed, said)


def _cut_short(experiment: ExperimentRecord, rows: Sequence[Row]) -> list[str]:
    """What is to be said where a budget ended the launches."""
    most = max((row.ok for row in rows), default=0)
    if not experiment.spec.get("measure", {}).get("budget") or most >= experiment.launches:
        return []
    return [Caution.OUT_OF_TIME.words(most=most, asked=experiment.launches)]


def with_levels(launches: Sequence[Launch]) -> list[Launch]:
    """Launches of heats, or of the pairs of a race, with their levels there."""
    heats: dict[int, list[int]] = {}
    for number, one in enumerate(launches):
        heat = one.record.block if one.record.purpose == "race" else one.record.heat if one.counts else None
        if one.turns is not None and heat is not None:
            heats.setdefault(heat, []).append(number)
    found = list(launches)
    for members in heats.values():
        if len(members) < 2:
            continue  # the only one left has no rounds to rank by others
        levels = levels_of([turns for one in members if (turns := launches[one].turns) is not None])
        for number, level in zip(members, levels, strict=True):
            found[number] = replace(launches[number], level=level)
    return found


def choose_reference(
    experiment: ExperimentRecord, rows: Sequence[Row]
) -> tuple[dict[str, Any] | None, list[str]]:
    """What the reference fixes: as asked, or the first ok contender where no case of the asked one is ok."""
    facts = [facts_of(case) for case in experiment.cases]
    timed = [index for index, row in enumerate(rows) if row.outcome == "ok" and row.step_time_ns]
    # What computes no network (null) is no yardstick while something proven is there.
    ok = [index for index in timed if _is_proven(rows[index])] or timed
    asked = experiment.reference
    if asked and any(matches(facts[index], asked) for index in timed):
        return asked, []
    chosen = default_reference(facts, ok, _contender_keys(experiment))
    if not asked or chosen is None:
        return chosen, []
    name = ", ".join(f"{value}" if key == "backend" else f"{key}={value}" for key, value in asked.items())
    new = ", ".join(f"{value}" if key == "backend" else f"{key}={value}" for key, value in chosen.items())
    first = next((row for row, own in zip(rows, facts, strict=True) if matches(own, asked)), None)
    why = f"{first.outcome}: {_first_line(first.reason)}" if first and first.reason else "not ok"
    return chosen, [Caution.OTHER_REFERENCE.words(name=name, why=why, other=new)]


def _is_proven(row: Row) -> bool:
    return row.parity is not None and row.parity.status == "passed"


def _contender_keys(experiment: ExperimentRecord) -> list[str]:
    """Keys of [[contender]] tables that vary, the backend first."""
    tables: list[Mapping[str, Any]] = experiment.spec.get("contender", [])
    values: dict[str, set[str]] = {}
    for table in tables:
        for key in {key for other in tables for key in other}:
            values.setdefault(key, set()).update(repr(one) for one in as_values(table.get(key)))
    return sorted(
        (key for key, seen in values.items() if len(seen) > 1), key=lambda key: (key != "backend", key)
    )


def _row(case: CaseRecord, launches: list[Launch], experiment: ExperimentRecord) -> Row:
    if case.unavailable is not None:
        return Row(case, "unavailable", case.unavailable, {}, experiment.launches, 0, None)
    speed = speed_of(launches)
    outcomes = Counter(str(launch.record.outcome) for launch in launches)
    failed = next((launch.record for launch in launches if launch.record.outcome != "ok"), None)
    measured = any(launch.record.purpose in TIMED for launch in launches)
    outcome = failed.outcome if failed else ("ok" if measured else None)
    proof = next((one.record for one in launches if one.record.purpose == "proof"), None)
    parity = proof.parity if proof else None
    lent = proof is not None and proof.case != content_of(case.id)  # with other threads, say
    own = [one for one in launches if not (lent and one.record is proof)]
    # Parity that failed has no time; neither has a case whose setting did not take effect, for a ratio.
    timed = [one for one in speed if one.counts]
    step = (
        None
        if outcome == "wrong"
        else positive_location([one.step_time_ns for one in timed if one.step_time_ns])
    )
    held = [one.record.memory.held for one in speed if one.record.memory.held is not None]
    peaks = [one.record.memory.steady_peak for one in speed if one.record.memory.steady_peak is not None]
    found = [(one.step_time_ns, one.median_step_ns) for one in timed] if step else []
    stretch = positive_location([step_ns / middle for step_ns, middle in found if step_ns and middle])
    last = (speed or own)[-1].record if own else None
    percent = _percent_of_peak(case, step, parity, last, experiment)
    return Row(
        case=case,
        outcome=outcome,
        reason=failed.reason if failed else None,
        outcomes=dict(outcomes),
        asked=experiment.launches,
        ok=sum(one.record.outcome == "ok" for one in speed),
        reference=None,
        step_time_ns=step,
        samples_per_s=_samples_per_s(case, last, [step_ns for step_ns, _ in found if step_ns]),
        sequences=SequenceRow.of([(one.record, one.step_time_ns) for one in timed]),
        mean_over_median=stretch.estimate if stretch else None,
        percent_of_peak=percent,
        peak_memory_bytes=int(median(held)) if held else None,
        resident_peak_bytes=int(median(peaks)) if peaks else None,
        parity=parity,
        proof_from=proof.case if proof and lent else None,
        proof_kept=proof if proof and proof.kept_from else None,
        reported=list(last.settings) if last else [],
        stop_reason=_common([one.record.stop_reason for one in speed]),
        steady=across_launches([one.times.steady.label for one in timed if one.times and one.times.steady]),
        warnings=Counter(
            [
                *_missing(speed, experiment),
                *_unsteady(timed),
                *growth_of(timed).words,
                *_two_levels(timed),
                *_bursts(stretch),
                *_put_off(timed),
                *_cuda_build(last, experiment),
                *beyond_peak(percent),
            ]
        )
        + Counter(text for launch in own for text in launch.record.warnings)
        + Counter(_of_launches(own, parity)),
        phases=typical_start(
            (one.record.at_once, one.phases) for one in launches if one.record.purpose in TIMED
        ),
        cold=typical(one.phases for one in own if one.record.purpose == "proof" and not one.record.kept_from),
        launches=launches,
    )


def _samples_per_s(
    case: CaseRecord, launch: LaunchRecord | None, step_times_ns: Sequence[float]
) -> Estimate | None:
    samples = launch.samples_per_step(case.batch_size) if launch else None
    if not samples:
        return None
    return positive_location([samples / (step_ns * 1e-9) for step_ns in step_times_ns])


def _percent_of_peak(
    case: CaseRecord,
    step: Estimate | None,
    parity: Parity | None,
    launch: LaunchRecord | None,
    experiment: ExperimentRecord,
) -> float | None:
    """2 x multiply-accumulates of a step, against the measured f32 peak at the case's threads. Only where a
    proof says that they were computed."""
    peak = peak_flops_of(case, launch, experiment)
    proven = parity is not None and parity.status == "passed"
    if step is None or not proven or not case.multiply_accumulates or not peak:
        return None
    return 100.0 * 2 * case.multiply_accumulates / (step.estimate * 1e-9) / peak


def peak_flops_of(
    case: CaseRecord, launch: LaunchRecord | None, experiment: ExperimentRecord
) -> float | None:
    """The measured f32 peak at the case's threads: those asked, otherwise those the backend reports."""
    return experiment.peak_flops.get(threads_of(case, launch))


def threads_of(case: CaseRecord, launch: LaunchRecord | None) -> str:
    """Those asked, otherwise those the backend reports; "": nobody says."""
    reported = {one.name: one.effective for one in launch.settings} if launch else {}
    return case.settings.get("threads") or reported.get("threads") or ""


_BELIEVED = {"adjusted": Caution.ADJUSTED, "unverifiable": Caution.UNVERIFIABLE}
_NOTES = {"flips": Caution.FLIPS, "ties": Caution.TIES, "reduced": Caution.REDUCED}


def _of_launches(launches: Sequence[Launch], parity: Parity | None) -> list[str]:
    """What the records of its launches and its proof give reason to say."""
    # A proof has no steady steps, so that less is known of its threads.
    timed = [launch for launch in launches if launch.record.purpose in TIMED] or launches
    adjusted = {
        _BELIEVED[one.status].words(name=one.name, asked=one.asked, effective=one.effective)
        for launch in timed
        for one in launch.record.settings
        if one.status in _BELIEVED and one.asked is not None
    }
    said: list[str] = []
    slow = sorted({one.tensor for launch in timed for one in launch.record.subnormals or ()})
    if slow:
        said.append(Caution.SUBNORMAL.words(tensors=", ".join(slow)))
    said += unequal_page_faults(timed) + lean_by_sharing(timed)
    notes = [_NOTES[note].words() for note in parity.notes if note in _NOTES] if parity else []
    if parity and parity.deterministic is False:
        notes.append(Caution.CHANCE.words())
    return said + sorted(adjusted) + notes


BURSTS = 1.03  # step time over median step


def _bursts(stretch: Estimate | None) -> list[str]:
    """A warning where a part of the time is in steps that are not typical."""
    if stretch is None or stretch.estimate < BURSTS:
        return []
    return [Caution.BURSTS.words(percent=f"{100 * (stretch.estimate - 1):.0f}")]


PUT_OFF = 1.05  # time per step of whole turns over that of the steps that count


def _put_off(timed: Sequence[Launch]) -> list[str]:
    """A warning where the first steps of turns, which do not count, take much."""
    known = [one.times.whole_over_counting for one in timed if one.times and one.times.whole_over_counting]
    typical_whole = median(known) if known else 1.0
    if typical_whole < PUT_OFF:
        return []
    return [Caution.PUT_OFF.words(percent=f"{100 * (typical_whole - 1):.0f}")]


CUDA = "torch.cuda"  # the fact: for which CUDA it was built


def _cuda_build(launch: LaunchRecord | None, experiment: ExperimentRecord) -> list[str]:
    """Records of versions that did not count GPUs say nothing of them."""
    cuda = launch.facts.get(CUDA) if launch else None
    if cuda is None or experiment.machine.get("gpus") != 0:
        return []
    return [Caution.CUDA_BUILD.words(library=f"its torch (CUDA {cuda})")]


def beyond_peak(percent: float | None) -> list[str]:
    """What it means that more than the peak was reached."""
    if percent is None or percent <= 100:
        return []
    return [Caution.BEYOND_PEAK.words()]


def _unsteady(timed: Sequence[Launch]) -> list[str]:
    """Where half or more of the launches that can tell have no steady state."""
    seen = [one.times.steady for one in timed if one.times and one.times.steady]
    known = [one for one in seen if one.label is not None]
    if not known or 2 * sum(not one.accepted for one in known) < len(known):
        return []
    return [Caution.NO_STEADY_STATE.words()]


def _two_levels(timed: Sequence[Launch]) -> list[str]:
    apart = two_levels([one.step_time_ns for one in timed if one.step_time_ns])
    if apart is None:
        return []
    return [Caution.TWO_GROUPS.words(apart=f"{100 * apart:.0f}")]


def _missing(speed: Sequence[Launch], experiment: ExperimentRecord) -> list[str]:
    """An interrupted run has fewer launches than were asked."""
    failed = any(one.record.outcome != "ok" for one in speed)
    if not speed or failed or len(speed) >= experiment.launches:
        return []
    return [Caution.LAUNCHES_MISSING.words(count=len(speed), asked=experiment.launches)]


def _common(words: Sequence[str | None]) -> str | None:
    """The word most launches have."""
    known = Counter(word for word in words if word)
    return known.most_common(1)[0][0] if known else None


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0] if text and text.strip() else ""
