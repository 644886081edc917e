"""A run as a section of the page."""

from __future__ import annotations

from timetrial.analysis.summary import Row
from timetrial.figures.plots_data import case_labels
from timetrial.page.answer import answers
from timetrial.page.figures import drawn
from timetrial.page.parts import Block, Cell, Section, Table, cell, from_grid, merged, pairs
from timetrial.report.detail import CaseDetail, data_facts, experiment_facts, settings_table
from timetrial.report.numbers import first_line
from timetrial.report.profile import profile_remarks
from timetrial.report.rendering import to_text
from timetrial.report.table import CasesTable, header, legend, proof_state, warnings
from timetrial.results.results import Results

# Which facts of a case answer which question; the names are those of `timetrial show`.
_STEADY = (
    "steady state", "turns", "in all turns", "over launches", "spread", "outliers", "not steady", "levels",
)  # fmt: skip
_PROVEN = ("proof", "deterministic")
_FAILED_FEW = 5  # launches of a row whose output is shown


def run_section(results: Results, anchor: str) -> Section:
    """All that its records say. InputError: they cannot be read."""
    experiment, rows = results.experiment, results.rows
    names = case_labels(rows)
    facts = [merged(CaseDetail(row).facts()) for row in rows]
    # The tensors behind a proof are among what is folded.
    proofs = [{key: first_line(one[key]) for key in _PROVEN if key in one} for one in facts]
    profiled = experiment.profiles > 0
    plot = results.plot
    figures = drawn(
        f"{anchor}-steps", "Step times: every steady step, each launch's step time", plot.step_times
    )
    figures += drawn(f"{anchor}-learning", "Learning: loss and accuracy", plot.learning)
    blocks = [
        Block("Results", [legend(rows)] if legend(rows) else [], [cases_table(CasesTable(results))]),
        Block("Where the time goes", plain=to_text(results.profile) if profiled else ""),
        Block("Figures", figures=figures),
        Block("How steady", tables=_facts_table(names, facts, ("step time", *_STEADY))),
        Block("How proven", [proof_state(rows)], _facts_table(names, proofs, _PROVEN)),
        Block("Settings, asked and in force", tables=_settings(rows, names)),
        Block("What failed", tables=_failed(rows, names)),
        Block("Each case", tables=_details(rows, names, facts)),
        environment(experiment_facts(experiment), data_facts(experiment)),
        again(experiment.again, str(results.path)),
    ]
    notes = profile_remarks(results.profile) if profiled else warnings(results)
    return Section(
        anchor, experiment.name, experiment.question or "", header(results), answers(results), notes,
        [block for block in blocks if block],
    )  # fmt: skip


def cases_table(shown: CasesTable) -> Table:
    """The table of the terminal: headings and reasons go across the columns."""
    width, lines, section = len(shown.titles), [], ""
    for line in shown.lines:
        if line.section != section:
            section = line.section
            lines.append([Cell(section, "heading", width)])
        cells = [cell(text) for text in line.axes] + [cell(*one) for one in line.cells]
        if line.reason is not None:
            cells.append(cell(*line.reason, span=max(1, width - len(cells))))
        lines.append(cells)
    return Table(shown.titles, lines, "cases")


def environment(facts: dict[str, str], data: list[dict[str, str]]) -> Block:
    """When, where, on which data."""
    return Block("Environment", tables=[pairs(facts), *map(pairs, data)])


def again(command: str, folder: str) -> Block:
    """How the same is measured once more, and where the records lie."""
    return Block("How to run it again", [f"The records are in `{folder}`."], plain=command)


def _facts_table(names: list[str], facts: list[dict[str, str]], wanted: tuple[str, ...]) -> list[Table]:
    """A line per case, with those facts that any case has."""
    titles = [title for title in wanted if any(title in one for one in facts)]
    if not titles:
        return []
    lines = [
        [cell(name), *(cell(one.get(title, "-")) for title in titles)]
        for name, one in zip(names, facts, strict=True)
    ]
    return [Table(["case", *titles], lines, "facts")]


def _settings(rows: list[Row], names: list[str]) -> list[Table]:
    """One line for all cases that have a setting in common, as `timetrial show` has it for each."""
    found: dict[tuple[str, ...], list[str]] = {}
    titles: list[str] = []
    for row, name in zip(rows, names, strict=True):
        table = from_grid(settings_table(row.settings))
        titles = table.titles
        for line in table.lines:
            found.setdefault(tuple(one.text for one in line), []).append(name)
    if not found:
        return []
    having = sum(bool(row.settings) for row in rows)
    lines = [
        [*map(cell, words), cell(f"all {having}" if len(of) == having > 1 else "; ".join(of))]
        for words, of in sorted(found.items(), key=lambda item: item[0][0])
    ]
    return [Table([*titles, "cases"], lines, "settings")]


def _failed(rows: list[Row], names: list[str]) -> list[Table]:
    """Rows without a step time, and launches that failed, with what they printed."""
    lines, printed = [], {}
    for row, name in zip(rows, names, strict=True):
        if row.outcome != "ok":
            words = row.outcome or "not measured"
            lines.append([cell(name), cell(words, "bold red"), cell(row.reason or "")])
        failed = [launch.record for launch in row.launches if launch.record.outcome != "ok"]
        for record in failed:
            where = f"launch {record.id}, {record.purpose}"
            if record.reason != row.reason or row.outcome == "ok":
                outcome = cell(record.outcome, "bold red")
                lines.append([cell(f"{name}: {where}"), outcome, cell(record.reason or "")])
        for record in failed[:_FAILED_FEW]:
            for stream, text in (("stdout", record.stdout), ("stderr", record.stderr)):
                if text.strip():
                    printed[f"{name}: launch {record.id}, {stream}"] = text.strip()[-2000:]
    tables = [Table(["case", "outcome", "reason"], lines, "failed")] if lines else []
    if printed:
        tables.append(pairs(printed, title="what they printed", folded=True))
    return tables


def _details(rows: list[Row], names: list[str], facts: list[dict[str, str]]) -> list[Table]:
    """What `timetrial show` says besides, folded."""
    tables = []
    for row, name, own in zip(rows, names, facts, strict=True):
        rest = {key: value for key, value in own.items() if key not in _STEADY}
        tables.append(pairs({"case": row.case.id, **rest}, title=name, folded=True))
        if row.launches:
            tables.append(from_grid(CaseDetail(row).launches(), title=f"{name}: launches", folded=True))
    return tables
