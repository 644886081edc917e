"""`timetrial show`: everything about one case, for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.analysis.page_faults import page_faults
from timetrial.analysis.ratios import speed_of
from timetrial.analysis.summary import Launch, Row
from timetrial.cautions import advice_for, sentences
from timetrial.endings.words import ending_lines
from timetrial.observing.disturbances import causes_of, in_words
from timetrial.records.model import (
    TIMED,
    CaseRecord,
    Comparison,
    ExperimentRecord,
    LaunchRecord,
    Library,
    Memory,
    Setting,
)
from timetrial.report.columns import Grid, Pairs, heading
from timetrial.report.datasets import facts_in_words
from timetrial.report.numbers import OF_PEAK, accuracy_words, duration, first_line, memory
from timetrial.report.proof_words import origin_words
from timetrial.statistics.intervals import Estimate

if TYPE_CHECKING:
    from timetrial.results.results import Results

_WORST = 5  # tensors of a proof that are listed
MOST_CHARACTERS = 4000  # of a value


class ExperimentDetail:
    """What holds for all cases: when, where, on which data, at which cost of the instrument."""

    def __init__(self, results: Results):
        self._experiment = results.experiment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Pairs of name and value."""
        experiment = self._experiment
        yield heading(experiment.name, options.max_width)
        if experiment.question:
            yield Text(experiment.question, style="italic")
        yield Pairs(experiment_facts(experiment).items())
        for words in data_facts(experiment):
            yield Pairs(words.items())


def experiment_facts(experiment: ExperimentRecord) -> dict[str, str]:
    """When, by which version, on which machine, at which cost of the instrument."""
    return {
        "measured": f"{experiment.created_at}, seed {experiment.seed}",
        "timetrial": experiment.timetrial_version,
        **{f"machine: {name}": str(value) for name, value in experiment.machine.items()},
        **{
            f"peak: {threads} thread(s)": f"{flops / 1e9:.0f} GFLOP/s f32, measured"
            for threads, flops in experiment.peak_flops.items()
        },
        **{f"instrument: {name}": f"{value:.4g}" for name, value in experiment.harness.items()},
    }


def data_facts(experiment: ExperimentRecord) -> list[dict[str, str]]:
    """Of each data set, and what was found in its samples."""
    return [
        {
            f"data: {name}": str(value)
            for name, value in {**workload, **facts_in_words(workload.get("checks", {}))}.items()
            if not isinstance(value, dict)
        }
        for workload in experiment.workloads
    ]


class CaseDetail:
    """One case: estimate, settings, proof, phases, memory, launches, libraries."""

    def __init__(self, row: Row):
        self._row = row

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A rule with the case's name, then one block per topic; topics without data are left out."""
        row = self._row
        told = {**row.case.axes, "backend": row.case.who}
        axes = " ".join(f"{name}={value}" for name, value in told.items() if value is not None)
        yield Text()
        yield heading(f"{row.case.id}  {axes}", options.max_width)
        yield Pairs((name, cut(value)) for name, value in self.facts())
        if row.settings:
            yield settings_table(row.settings)
        if row.launches:
            yield self.launches()
        for launch in row.launches:
            yield from _output(launch)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Name and value; a name that is empty goes on with the one before."""
        row = self._row
        yield "outcome", f"{row.outcome or 'not measured'}{f': {row.reason}' if row.reason else ''}"
        if row.step_time_ns:
            step = row.step_time_ns
            yield "step time", f"{_with_interval(step)} ({step.in_words()})"
        if row.median_step_ns:
            yield "median step", _with_interval(row.median_step_ns)
        yield from _turns(row)
        yield from self._steps()
        if row.samples_per_s:
            yield "samples/s", f"{row.samples_per_s.estimate:,.0f}"
        yield from row.sequences.facts() if row.sequences else ()
        if row.case.multiply_accumulates:
            yield "multiply-accumulates", f"{row.case.multiply_accumulates:,} per step"
        if row.percent_of_peak is not None:
            yield "of peak", f"{row.percent_of_peak:.1f} % of {OF_PEAK}"
        yield from self._accuracy()
        if row.parity:
            yield from self._proof()
        first = next((launch.record for launch in row.launches if launch.record.purpose in TIMED), None)
        if first is None:
            return
        yield (
            "backend",
            ", ".join(f"{key} {value}" for key, value in first.backend.items() if value and key != "flags"),
        )
        if first.facts:
            yield "facts", "\n".join(f"{name}: {value}" for name, value in first.facts.items())
        if first.phases:
            start = first.phases[0].ns
            yield "phases", ", ".join(f"{one.name} +{duration(one.ns - start)}" for one in first.phases[1:])
        yield from _repeated(first)
        yield from self._before_steady()
        yield from memory_facts(row.case, first.memory)
        yield from counter_facts(row.launches)
        if first.libraries:
            yield (
                "libraries",
                "\n".join(_library(one) for one in first.libraries),
            )
        if first.dropped_environment:
            yield "environment dropped", f"{len(first.dropped_environment)} variables of the caller"
        for text, launches in row.warnings.items():
            counted = f"{text} ({launches} launches)" if launches > 1 else text
            yield "warning", sentences(counted, advice_for(text))

    def _accuracy(self) -> Iterator[tuple[str, str]]:
        """The table's figure, the row's own if that is another, and the comparison with the reference."""
        row = self._row
        if row.accuracy is None:
            return
        of = f", of {row.accuracy_rows} rows proven to compute the same" if row.accuracy_rows > 1 else ""
        yield "accuracy", f"{accuracy_words(row.accuracy)}{of} ({row.accuracy.in_words()})"
        if row.accuracy_from is not None:
            yield (
                "learned by",
                f"case {row.accuracy_from}: what differs cannot change it (learning=every: each)",
            )
        if row.accuracy_rows > 1 and row.accuracy_own is not None:
            yield "accuracy, its own", accuracy_words(row.accuracy_own)
        found = row.accuracy_against
        if found is not None:
            yield (
                "against the reference",
                f"more often right on {found.only_first} test images, less often on {found.only_second}: "
                f"exact sign test (McNemar) and over seeds, p = {found.p_value:.2g}",
            )

    def _steps(self) -> Iterator[tuple[str, str]]:
        """How the steady steps scatter, within a launch and between launches."""
        row = self._row
        if row.stop_reason != "rounds" and (row.steady or row.stop_reason):
            stop = f"; stopped by {row.stop_reason}" if row.stop_reason else ""
            yield "steady state", f"{row.steady or 'cannot tell'}{stop}"
        found = row.distribution
        if found is None:
            return
        yield "steady steps", f"{found.steps:,}, worth {found.effective:,.0f} independent ones"
        words = [f"mean {_with_interval(found.mean_ns)}"] if found.mean_ns else []
        known = {percent: one for percent, one in found.percentiles_ns.items() if one}
        words += [f"p{percent} {_with_interval(one)}" for percent, one in known.items()]
        yield "over launches", "\n".join(words)
        between = "" if found.spread_between is None else f", of launches {100 * found.spread_between:.1f} %"
        robust = f" ({100 * found.spread_within_robust:.1f} % but for outliers)"
        yield "spread", f"of the steps of a launch {100 * found.spread_within:.1f} %{robust}{between}"
        if found.outliers_mild + found.outliers_severe:
            yield "outliers", f"{found.outliers_mild:,} mild, {found.outliers_severe:,} severe steps, kept"
        unsteady = "\n".join(filter(None, map(_why_unsteady, row.launches)))
        if unsteady:
            yield "not steady", unsteady
        if found.levels_apart is not None:
            yield "levels", f"the launches form two groups, {100 * found.levels_apart:.1f} % apart"

    def _before_steady(self) -> Iterator[tuple[str, str]]:
        """Import, build, first step and warm-up; in the proof with nothing compiled before."""
        row = self._row
        alone = {one.record.purpose for one in row.launches if one.record.at_once == 1}
        said = (("before the steps", TIMED, row.phases), ("in the proof", ("proof",), row.cold))
        for name, purposes, phases in said:
            known = {
                "import": phases.import_s,
                "build": phases.build_s,
                "first step" if phases is row.phases else "first call": phases.first_step_s,
                "from the first step to the steady state": phases.to_steady_s,
                "in all": phases.before_steady_s,
            }
            words = [f"{what} {duration(took * 1e9)}" for what, took in known.items() if took is not None]
            if words:
                yield name + ", beside another" * alone.isdisjoint(purposes), ", ".join(words)
        for launch in row.launches:
            cache = launch.record.compile_cache
            if launch.record.purpose in TIMED and cache is not None and cache.state != "none":
                yield "compile cache", f"{cache.state} ({cache.path})"
                return

    def _proof(self) -> Iterator[tuple[str, str]]:
        parity = self._row.parity
        assert parity is not None
        words = f"{parity.status}{f' against {parity.judge}' if parity.judge else ''}"
        if parity.status == "passed" and self._row.outcome == "wrong":
            words += f", but a timed launch did not repeat it: {first_line(self._row.reason)}"
        if parity.max_error is not None:
            words += f", largest error {parity.max_error:.2g} ({parity.tensor})"
        words += "".join(f", {one}" for one in origin_words(self._row.proof_from, self._row.proof_kept))
        yield "proof", f"{words}{f': {parity.reason}' if parity.reason else ''}"
        ranked = sorted(parity.comparisons, key=lambda one: (one.passed, -_share(one)))
        # Of records older than the gate that shows every decision that was turned.
        beyond = "FAILED" if parity.status == "failed" else f"allowed: {', '.join(parity.notes) or 'a note'}"
        for one in ranked[:_WORST]:
            error = "not finite" if one.error is None else f"{one.error:.2g}"
            yield (
                "",
                f"{one.tensor}: {error} of {one.tolerance:.0e} allowed{'' if one.passed else f'  {beyond}'}",
            )
        for words in parity.turned[:_WORST]:
            yield "", f"turned by rounding, and shown: {words}"
        if parity.deterministic is not None:
            same = "the same bits" if parity.deterministic else "DIFFERENT numbers"
            yield "deterministic", f"five steps, taken twice from the same weights, gave {same}"

    def launches(self) -> Grid:
        """One line per launch."""
        titles = (
            "launch", "purpose", "block", "seed", "outcome", "step", "interval", "steady", "stopped by",
            "memory", "faults", "accuracy", "took", "",
        )  # fmt: skip
        return Grid(titles, map(_launch_cells, self._row.launches))


def memory_facts(case: CaseRecord, held: Memory) -> Iterator[tuple[str, str]]:
    """Resident, then by phase what was private, shared or of files; and what the network needs on paper."""
    sizes = {name: value for name, value in held.model_dump(exclude={"phases"}).items() if value is not None}
    if sizes:
        words = [f"{name.replace('_', ' ')} {memory(value)}" for name, value in sizes.items()]
        yield "memory", ", ".join(words)
    by_phase = []
    for one in held.phases:
        parts = {"private": one.anonymous_bytes, "shared": one.shared_bytes, "of files": one.file_bytes}
        said = ", ".join(f"{memory(size)} {name}" for name, size in parts.items() if size is not None)
        if one.anonymous_peak_bytes is not None:
            said += f"; at most {memory(one.anonymous_peak_bytes)} private"
        by_phase.append(f"{one.phase}: {said}")
    if by_phase:
        yield "memory by phase", "\n".join(by_phase)
    if case.least_bytes:
        needed = ", ".join(f"{memory(size)} of {name}" for name, size in case.least_bytes.items() if size)
        yield "memory on paper", f"{memory(sum(case.least_bytes.values()))}: {needed}"


def counter_facts(launches: Iterable[Launch]) -> Iterator[tuple[str, str]]:
    """Of the first launch that counted, and why it did not count others."""
    counters = next((one.record.counters for one in launches if one.record.counters), [])
    words = [f"{one.name} {one.per_step:,.6g}" for one in counters if one.per_step is not None]
    if words:
        yield "counted in a step", ", ".join(words)
    reasons: dict[str, list[str]] = {}
    for one in counters:
        if one.reason:
            reasons.setdefault(one.reason, []).append(one.name)
    if reasons:
        yield "not counted", "\n".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def _launch_cells(launch: Launch) -> list[str]:
    record = launch.record
    peak = record.memory.held
    return [
        record.id,
        record.purpose,
        str(record.block),
        str(record.seed),
        record.outcome,
        duration(launch.step_time_ns) if launch.step_time_ns else "",
        *_launch_words(launch),
        memory(peak) if peak else "",
        "" if (faults := page_faults(launch)) is None else f"{faults:,.0f}",
        f"{100 * record.evaluations[-1].accuracy:.1f} %" if record.evaluations else "",
        f"{record.duration_s:.1f} s",
        _disturbed(record),
    ]


def settings_table(settings: Iterable[Setting]) -> Grid:
    """What was asked of each, and what is in force."""
    titles = ("setting", "asked", "effective", "status", "how read")
    rows = ([one.name, one.asked or "-", one.effective or "-", one.status, one.how_read] for one in settings)
    return Grid(titles, rows)


def _disturbed(record: LaunchRecord) -> str:
    """'disturbed: another program (make) used 0.8 of the 2 CPUs'."""
    causes = causes_of(record)
    return f"disturbed: {in_words([causes])}" if causes else ""


def _turns(row: Row) -> Iterator[tuple[str, str]]:
    """Of a row that rode in heats: how many turns, and by what its ratios scatter from heat to heat."""
    rode = [one for one in speed_of(row.launches) if one.turns is not None and one.times is not None]
    if not rode:
        return
    turns = [turn for one in rode for turn in one.record.turns]
    disturbed = sum(turn.disturbed for turn in turns)
    again = len(turns) - sum(len({turn.round for turn in one.record.turns}) for one in rode)
    words = f", {disturbed} of them disturbed by others, {again} taken again" if disturbed else ""
    yield "turns", f"{len(turns)} in {len(rode)} heat{'s' if len(rode) != 1 else ''}{words}"
    parts = row.scatter_parts
    if parts is not None:
        yield (
            "scatter of its ratio",
            f"{100 * parts.heats:.1f} % from heat to heat: {100 * parts.turns:.1f} % by its turns (longer "
            f"heats would help), {100 * parts.launches:.1f} % by its launches (only more heats would)",
        )


def _repeated(record: LaunchRecord) -> Iterator[tuple[str, str]]:
    """Which steps were timed, and what they left behind."""
    passes = record.passes
    if passes is not None and passes.steps is not None:
        words = f"the first {passes.steps} from the initial state, again and again"
        if passes.resets:
            words += f"; resets in between: {passes.resets}, {duration(passes.reset_ns)} in all, in no step"
        yield "steps timed", words
    elif passes is not None:
        yield "steps timed", "on and on: the contender has no reset, or nothing to be reset"
    if record.subnormals:
        yield (
            "subnormal numbers",
            "\n".join(f"{one.tensor}: {one.count:,} of {one.size:,}" for one in record.subnormals),
        )


def _launch_words(launch: Launch) -> tuple[str, str, str]:
    """Half of the median's interval within the launch, the label of its steady state, why it stopped."""
    times, stop = launch.times, launch.record.stop_reason or ""
    if times is None:
        return "", "", stop
    half = times.median.half_width
    label = (times.steady.label or "cannot tell") if times.steady else ""
    return "" if half is None else f"±{100 * half:.1f} %", label, stop


def _why_unsteady(launch: Launch) -> str | None:
    """'launch 007: its level changed by +4.1 % at step 412'."""
    steady = launch.times.steady if launch.times else None
    if steady is None or steady.label is None or steady.accepted or not steady.reason:
        return None
    return f"launch {launch.record.id}: {steady.reason}"


def _with_interval(one: Estimate) -> str:
    """'8.93 ms [8.87 ms, 9.01 ms]'; the interval only where there is one."""
    if one.low is None or one.high is None:
        return duration(one.estimate)
    return f"{duration(one.estimate)} [{duration(one.low)}, {duration(one.high)}]"


def _output(launch: Launch) -> Iterator[Text]:
    """What a launch that failed has printed."""
    record = launch.record
    if record.outcome == "ok":
        return
    yield Text(f"launch {record.id}: {record.outcome}: {record.reason or ''}", style="red")
    for line in ending_lines(record.ending) if record.ending else ():
        yield Text(f"  {line}")
    for name, text in (("stdout", record.stdout), ("stderr", record.stderr)):
        if text.strip():
            yield Text(f"  {name}: {text.strip()[-2000:]}", style="dim")


def _library(one: Library) -> str:
    """Path, version, and what it says of itself."""
    words = [one.path, one.version or ""]
    words += [f"kernel {one.kernel}"] if one.kernel else []
    words += [f"threads {one.threads} ({one.threads_getter})"] if one.threads is not None else []
    return "  ".join(word for word in words if word)


def cut(text: str) -> str:
    """A contender may say megabytes about itself."""
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}... ({len(text):,} characters; the record has them all)"


def _share(one: Comparison) -> float:
    """Of the tolerance, that an error takes."""
    if one.error is None or (one.error > 0 and one.tolerance == 0):
        return math.inf
    return one.error / one.tolerance if one.tolerance else 0.0
