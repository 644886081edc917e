"""A race in words: the sides, the verdicts, and what to know about them."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from timetrial.analysis.page_faults import unequal_faults
from timetrial.cases.settings import PLAIN_WORDS
from timetrial.cautions import Caution, advice_for, advised, caution_of, sentences
from timetrial.observing.disturbances import noise
from timetrial.records.files import near
from timetrial.records.metric import METRICS
from timetrial.records.sessions import resuming, said_of
from timetrial.report.columns import GAP, aligned, closing_lines, column_widths
from timetrial.report.deciding import deciding_words, is_out_of_time, pairs_words
from timetrial.report.numbers import first_line, interval_words, measured_words, seconds
from timetrial.report.proof_words import UNPROVEN, UNPROVEN_STYLE, Shown, kept_words, proof_words
from timetrial.report.remarks import remark_lines, sides_words
from timetrial.statistics.dispersion import two_levels
from timetrial.statistics.verdict import DIFFERENT, Effect

if TYPE_CHECKING:
    from timetrial.results.race import Duel, Race
    from timetrial.statistics.intervals import Estimate

_STYLES = {"better": "green", "worse": "red", "same": "", "inconclusive": "yellow", None: "yellow"}
_STATISTICS = {
    "mean": "by the time per step",
    "median": "by the median step",
    "p25": "by the lower quartile",
}
FACTOR_FROM = 1.5  # smaller differences are said in percent


class RaceTable:
    """A renderable for rich: the sides with their levels, the verdict of each, then what to know."""

    def __init__(self, race: Race):
        self._race = race

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        race = self._race
        yield Text(header(race), style="bold", overflow="fold")
        yield from _laid_out(list(self.lines()), options.max_width)
        for name, words in race.origins.items():
            yield Text(f"  {name} is {words}", style="dim")
        yield from remark_lines(notes(race), options.max_width)
        yield closing_lines(race.folder, race.again, options.max_width)

    def lines(self) -> Iterator[list[tuple[str, str]]]:
        """(text, style) of each cell: what a side is, its name, its level; of a challenger the verdict and
        on how many pairs it stands."""
        race = self._race
        base, *others = race.cases
        yield [("base", "dim"), (race.names[base.id], ""), (level_words(race, base.id), "bold")]
        for case, duel in zip(others, race.duels, strict=True):
            pairs = pairs_words(race, duel) if duel.effect else ""
            yield [
                ("challenger", "dim"),
                (race.names[case.id], ""),
                (level_words(race, case.id), "bold"),
                self._verdict(duel, case.id),
                (pairs, "dim"),
            ]

    def _verdict(self, duel: Duel, challenger: str) -> tuple[str, str]:
        words = verdict_words(self._race, duel)
        sides = (_shown(self._race, case) for case in (self._race.cases[0].id, challenger))
        if duel.effect is None or all(side.is_proven for side in sides):
            return words, _STYLES[duel.verdict]
        return f"{words} {UNPROVEN}", UNPROVEN_STYLE


_SIDE_CELLS = 3  # what a side is, its name, its level; the verdict comes behind them


def _laid_out(lines: list[list[tuple[str, str]]], width: int) -> Iterator[Text]:
    """In columns; where these are wider than the terminal, the verdict goes below its side and is wrapped."""
    widths = column_widths([[text for text, _ in line] for line in lines])
    if sum(widths) + len(GAP) * (len(widths) - 1) <= width:
        for line in lines:
            yield aligned(line, widths, [False] * len(widths))
        return
    indent = min(widths[0] + len(GAP), width // 4)
    for line in lines:
        first = [cell for cell in line[:_SIDE_CELLS] if cell[0]]
        if sum(widths[:_SIDE_CELLS]) + len(GAP) * (_SIDE_CELLS - 1) <= width:
            yield aligned(first, widths[:_SIDE_CELLS], [False] * _SIDE_CELLS)
        else:
            yield from _wrapped(first, 0, indent, width)
        yield from _wrapped([cell for cell in line[_SIDE_CELLS:] if cell[0]], indent, indent, width)


def _wrapped(cells: list[tuple[str, str]], first: int, indent: int, width: int) -> Iterator[Text]:
    """One behind the other, in lines that fit; each word keeps the style of its cell."""
    line, used, is_empty = Text(" " * first), first, True
    for text, style in cells:
        for place, word in enumerate(text.split()):
            pieces = textwrap.wrap(word, max(width - indent, 1)) or [""]
            for piece in pieces:
                gap = "" if is_empty else GAP if place == 0 else " "
                if not is_empty and used + len(gap) + len(piece) > width:
                    yield line
                    line, used, gap = Text(" " * indent), indent, ""
                line.append(gap).append(piece, style=style)
                used, is_empty = used + len(gap) + len(piece), False
    if not is_empty:
        yield line


def header(race: Race) -> str:
    """Metric, work, machine, proof, time: what is the same for all sides."""
    base, experiment = race.cases[0], race.record.experiment
    parts = ["race", METRICS[race.metric].title]
    if base.network != "none":
        parts += [base.network, base.dataset]
    sizes = {case.batch_size for case in race.cases}
    parts += [f"batch {base.batch_size}"] if len(sizes) == 1 and base.network != "none" else []
    if experiment.machine.get("cpu"):
        cores = int(experiment.machine.get("usable_cpus", 1))
        parts.append(f"{experiment.machine['cpu']}, {cores} core{'s' if cores != 1 else ''}")
    settings = [case.settings for case in race.cases]
    parts += [
        words
        for (name, value), words in PLAIN_WORDS.items()
        if all(one.get(name) == value for one in settings)
    ]
    parts += [text for text in experiment.warnings if caution_of(text) is Caution.HELD]
    parts.append(_proof_words(race))
    if race.seconds is not None:
        parts.append(seconds(race.seconds))
    return " · ".join(part for part in parts if part)


def _proof_words(race: Race) -> str:
    return proof_words([_shown(race, case.id) for case in race.cases], "all proven equal")


def _shown(race: Race, case: str) -> Shown:
    return Shown(race.names[case], race.parity(case))


def level_words(race: Race, case: str) -> str:
    """'20.4 ms ±0.8 %'."""
    found = race.level(case)
    return "-" if found is None else measured_words(METRICS[race.metric].unit, found)


def verdict_words(race: Race, duel: Duel) -> str:
    """'4.8 % slower [4.1, 5.5]', 'same (within 5 %) [-0.4, +0.9]', or why there is no verdict."""
    if duel.effect is None:
        return f"not judged: {first_line(duel.reason)}"
    low, high = 100 * duel.effect.low, 100 * duel.effect.high
    if duel.verdict == "same":
        return f"same (within {_percent(race.rule.equivalence)} %) [{low:+.1f}, {high:+.1f}]"
    if duel.verdict == "inconclusive":
        if duel.confirmed is False:
            return f"inconclusive: not confirmed [{low:+.1f}, {high:+.1f}]"
        smallest = _percent(duel.minimal_detectable_effect or 0.0)
        return f"inconclusive: differences under {smallest} % cannot be seen here [{low:+.1f}, {high:+.1f}]"
    return effect_words(race.metric, duel.effect)


def effect_words(metric: str, effect: Effect) -> str:
    """'4.8 % slower [4.1, 5.5]', or, from FACTOR_FROM on, '2.80x faster [2.71, 2.88]'."""
    word = METRICS[metric].more if effect.estimate > 0 else METRICS[metric].less
    if 1 / FACTOR_FROM < 1 + effect.estimate < FACTOR_FROM:
        near, far = sorted((abs(effect.low), abs(effect.high)))
        return f"{100 * abs(effect.estimate):.1f} % {word} [{100 * near:.1f}, {100 * far:.1f}]"
    factors = [1 + effect.estimate, 1 + effect.low, 1 + effect.high]
    if effect.estimate < 0:
        factors = [1 / factor for factor in factors]
    near, far = sorted(factors[1:])
    return f"{factors[0]:.2f}x {word} [{near:.2f}, {far:.2f}]"


def _which(pairs: list[str]) -> str:
    """'pair 2 is', 'pairs 2, 5 and 6 are'."""
    if len(pairs) == 1:
        return f"pair {pairs[0]} is"
    return f"pairs {', '.join(pairs[:-1])} and {pairs[-1]} are"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}".removesuffix(".0")


def notes(race: Race) -> list[str]:
    """What a reader must know besides the verdicts, of which sides, and what to do about it."""
    found = [*said_of(race.folder, resuming(race.folder, "race")), *race.damaged]
    found += [text for text in race.record.experiment.warnings if caution_of(text) is not Caution.HELD]
    if race.record.isolated:
        why = race.record.why_isolated
        if race.record.goes_on:
            found.append(Caution.ALTERNATE_FOR_HELPERS.words(why=why))
        else:
            found.append(Caution.ALTERNATE_FOR_MEMORY.words(why=why) if why else Caution.ALTERNATE.words())
    contents = [case.id.split("-")[0] for case in race.cases]
    if len(set(contents)) < len(contents):
        found.append(Caution.AGAINST_ITSELF.words())
    said = [advised(text) for text in found]
    for duel in race.duels:
        said += [f"{duel.challenger}: {advised(text)}" for text in _of_duel(race, duel)]
    for case in race.cases:
        apart = two_levels(race.values(case.id))
        if apart is not None:
            words = Caution.TWO_KINDS.words(apart=f"{100 * apart:.0f}")
            said.append(f"{race.names[case.id]}: {advised(words)}")
    tick_ns = race.coarse_tick_ns()
    if tick_ns is not None:
        said.append(advised(Caution.TICKS.words(ticks=tick_ns)))
    void: dict[str, list[str]] = {}
    for pair in race.pairs:
        if pair.void is not None:
            void.setdefault(first_line(pair.void), []).append(str(pair.number + 1))
    for why, pairs in void.items():
        said.append(advised(Caution.VOID.words(pairs=_which(pairs), why=why)))
    for case in race.cases:
        for words in unequal_faults(_faults(race, case.id)):
            said.append(f"{race.names[case.id]}: {advised(words)}")
    for side, grown in race.growth.items():
        said += [f"{race.names[side]}: {advised(words)}" for words in grown.words]
    for remark in noise([one.record for launches in race.launches.values() for one in launches]):
        said.append(f"{_sides(race, remark.cases)}: {advised(remark.text)}")
    proofs = [proof for case in race.cases if (proof := race.proof(case.id)) is not None]
    kept = kept_words(proofs)
    return [*said, *([kept] if kept else []), *_of_launches(race)]


def _lacks_confirmation(race: Race, duel: Duel) -> bool:
    return race.record.confirm and duel.verdict in race.record.confirms and not duel.confirmed


def _faults(race: Race, case: str) -> Iterator[tuple[float, float]]:
    """Page faults in a step and step time [ns] of each launch of a side."""
    for one in race.launches[case]:
        faults = one.record.witnesses.get("page_faults_per_step")
        steps = one.steps()
        turns = steps.are("turn")
        if faults is not None and turns.any():
            yield faults, float(steps.duration_ns[turns].mean())


def _of_duel(race: Race, duel: Duel) -> Iterator[str]:
    if duel.reason and duel.effect is not None:
        yield duel.reason
    is_late = is_out_of_time(race) and duel.pairs > 0
    if duel.confirmed:
        yield Caution.CONFIRMED.words()
    elif is_late and (duel.verdict in (None, "inconclusive") or _lacks_confirmation(race, duel)):
        yield Caution.RACE_OUT_OF_TIME.words(pairs=pairs_words(race, duel), cure=deciding_words(race, duel))
    elif duel.verdict in DIFFERENT:
        yield Caution.RACED_ONCE.words()
    elif duel.verdict == "inconclusive" and duel.confirmed is None:
        yield Caution.RACE_UNDECIDED.words(pairs=pairs_words(race, duel), cure=deciding_words(race, duel))
    if duel.effect is not None and any(
        abs(math.log1p(value) - math.log1p(duel.effect.estimate)) > math.log1p(race.rule.min_effect)
        for value in duel.other_statistics.values()
    ):
        others = ", ".join(
            f"{_STATISTICS[name]} {100 * value:+.1f} %" for name, value in duel.other_statistics.items()
        )
        yield Caution.SKEWED.words(
            effect=f"{100 * duel.effect.estimate:+.1f}",
            gate=_STATISTICS[race.record.rule.gate],
            others=others,
        )


def _of_launches(race: Race) -> Iterator[str]:
    """What launches of sides say, each text once."""
    warned: dict[str, Counter[str]] = {}
    for case, launches in race.launches.items():
        for one in launches:
            for text in one.record.warnings:
                warned.setdefault(text, Counter())[case] += 1
    for text, counts in warned.items():
        launches_saying = sum(counts.values())
        counted = f"{text} ({launches_saying} launches)" if launches_saying > len(counts) else text
        yield f"{_sides(race, counts)}: {sentences(counted, advice_for(text))}"


def _sides(race: Race, cases: Collection[str]) -> str:
    return sides_words([race.names[case.id] for case in race.cases if case.id in cases], race.names.values())


def explain(race: Race, duel: Duel) -> str:
    """A duel in several lines, for a test that failed: both intervals, the pairs, settings, the command."""
    confidence = _percent(race.rule_of(duel.case).confidence_at(duel.pairs))
    base = race.cases[0].id
    title = METRICS[race.metric].title
    lines = [f"{duel.challenger} against {duel.base}, {title}: {verdict_words(race, duel)}"]
    if duel.effect is not None:
        pairs = f"{duel.pairs} pairs" + (f", {duel.void} void" if duel.void else "")
        lines.append(f"  interval    {confidence} % over {pairs}")
    for word, case in (("base", base), ("challenger", duel.case)):
        found = race.level(case)
        lines.append(f"  {word:<11} {_level_interval(race.metric, found)}   {race.names[case]}")
    if duel.log_ratios:
        values = " ".join(f"{100 * value:+.1f}" for value in duel.log_ratios)
        lines.append(f"  each pair   {values}   (100 ln(challenger / base))")
    lines += [f"  setting     {text}" for text in duel.settings]
    lines += [f"  imported    {name} from {words}" for name, words in race.origins.items()]
    lines += [f"  note        {text}" for text in notes(race)]
    lines += [f"  records     {near(race.folder)}", f"  again       {race.again}"]
    return "\n".join(lines)


def _level_interval(metric: str, found: Estimate | None) -> str:
    if found is None:
        return "-"
    return interval_words(METRICS[metric].unit, found.estimate, found.low, found.high)
