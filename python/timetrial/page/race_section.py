"""A race as a section of the page."""

from __future__ import annotations

from timetrial.page.figures import drawn
from timetrial.page.parts import Block, Section, Table, cell, from_grid, pairs
from timetrial.page.run_section import again, environment
from timetrial.records.metric import METRICS
from timetrial.records.proven import content_of
from timetrial.report.detail import data_facts, experiment_facts, settings_table
from timetrial.report.proof_words import UNPROVEN, origin_words
from timetrial.report.race import RaceTable, explain, header, notes
from timetrial.results.race import Race

_TITLES = ["side", "name", "", "verdict", "stands on"]


def race_section(race: Race, anchor: str) -> Section:
    """All that its records say. InputError: they cannot be read."""
    experiment, metric = race.record.experiment, METRICS[race.metric].title
    lines = list(RaceTable(race).lines())
    base = race.names[race.cases[0].id]
    answers = [f"`{line[1][0]}` against `{base}`: {_sentence(line[3][0])}" for line in lines[1:]]
    titles = [title or metric for title in _TITLES]
    nothing = ("", "")
    cells = [[*line, *[nothing] * (len(titles) - len(line))] for line in lines]
    table = Table(titles, [[cell(*one) for one in line] for line in cells], "race")
    figures = drawn(f"{anchor}-pairs", "Every pair, and what they say together", race.plot)
    blocks = [
        Block("Verdicts", tables=[table]),
        Block("Figures", figures=figures),
        Block("How steady", plain="\n\n".join(explain(race, duel) for duel in race.duels)),
        Block("How proven", tables=[_proofs(race)]),
        Block("Settings, asked and in force", tables=_settings(race)),
        Block("What failed", tables=_failed(race)),
        environment(experiment_facts(experiment), data_facts(experiment)),
        again(race.again, str(race.folder)),
    ]
    return Section(
        anchor,
        f"Race: {', '.join(race.names.values())}",
        experiment.question or f"Does the {metric} differ from that of {base}?",
        header(race),
        answers,
        notes(race),
        [block for block in blocks if block],
    )


def _sentence(verdict: str) -> str:
    if not verdict.endswith(UNPROVEN):
        return f"{verdict}."
    return f"{verdict.removesuffix(UNPROVEN).strip()}. That they do equal work is not shown."


def _proofs(race: Race) -> Table:
    lines = []
    for case in race.cases:
        parity = race.parity(case.id)
        status = parity.status if parity else "unproven"
        largest = parity.max_error if parity else None
        error = "-" if parity is None or largest is None else f"{largest:.2g} ({parity.tensor})"
        proof = race.proof(case.id)
        lender = proof.case if proof and content_of(proof.case) != content_of(case.id) else None
        said = [] if parity is None else [parity.reason or "", *parity.notes, *origin_words(lender, proof)]
        words = "; ".join(filter(None, said))
        style = {"passed": "green", "failed": "bold red"}.get(status, "yellow")
        judge = (parity.judge if parity else None) or "-"
        lines.append([cell(race.names[case.id]), cell(status, style), cell(judge), cell(error), cell(words)])
    return Table(["side", "proof", "judge", "largest error", "notes"], lines, "proofs")


def _settings(race: Race) -> list[Table]:
    sides = [(race.names[case], launches[-1].record) for case, launches in race.launches.items() if launches]
    tables = [(name, from_grid(settings_table(record.settings))) for name, record in sides if record.settings]
    lines = [[cell(name), *line] for name, table in tables for line in table.lines]
    return [Table(["side", *tables[0][1].titles], lines, "settings")] if lines else []


def _failed(race: Race) -> list[Table]:
    found = {duel.challenger: duel.reason for duel in race.duels if duel.effect is None and duel.reason}
    found |= {f"pair {pair.number + 1} is void": pair.void for pair in race.pairs if pair.void is not None}
    return [pairs(found)] if found else []
