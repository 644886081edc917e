"""Several results in one page: whether their times may stand side by side, and how they went."""

from __future__ import annotations

from collections.abc import Sequence

from timetrial.changes.facts import machine_of
from timetrial.changes.findings import record_of
from timetrial.figures.plots_data import case_labels
from timetrial.page.parts import Block, Table, cell
from timetrial.report.race import level_words
from timetrial.report.table import row_words
from timetrial.results.race import Race
from timetrial.results.results import Results

Found = Results | Race
Machine = tuple[str, ...]


def _machine(found: Found) -> Machine:
    return tuple(machine_of(record_of(found)).values())


def machines_block(found: Sequence[Found]) -> Block:
    """That there are several. Empty where there is one."""
    machines = list(dict.fromkeys(map(_machine, found)))
    if len(machines) < 2:
        return Block("")
    said = [
        f"These results are of {len(machines)} machines. Times of different machines are not compared.",
        *(
            f"{_machine_words(next(one for one in found if _machine(one) == machine))}: "
            + ", ".join(_name(one) for one in found if _machine(one) == machine)
            for machine in machines
        ),
    ]
    return Block("Machines", said)


def over_time_block(found: Sequence[Found]) -> Block:
    """Step times of cases that several results of one machine have, the oldest first. Empty without."""
    groups: dict[Machine, list[Found]] = {}
    for one in sorted(found, key=lambda one: record_of(one).created_at):
        groups.setdefault(_machine(one), []).append(one)
    tables = [table for group in groups.values() if (table := _over_time(group)) is not None]
    if not tables:
        return Block("")
    note = (
        "What was measured at different times is not a comparison: the machine may have changed meanwhile. "
        "`timetrial race` says whether a difference is real."
    )
    return Block("Step times over time", [note], tables)


def _over_time(group: Sequence[Found]) -> Table | None:
    times = [_step_times(one) for one in group]
    labels = {case: label for one in times for case, (label, _) in one.items()}
    shared = [case for case in labels if sum(case in one for one in times) > 1]
    if not shared:
        return None
    titles = [f"{record_of(one).created_at[:16].replace('T', ' ')}, {record_of(one).id}" for one in group]
    lines = [
        [cell(labels[case]), *(cell(one[case][1] if case in one else "") for one in times)] for case in shared
    ]
    return Table(["case", *titles], lines, "over-time")


def _step_times(found: Found) -> dict[str, tuple[str, str]]:
    """Case id -> its name and its step time."""
    if isinstance(found, Race):
        if found.metric != "step_time":
            return {}
        return {case.id: (found.names[case.id], level_words(found, case.id)) for case in found.cases}
    rows = found.rows
    # The ratio is against the reference of that one result.
    return {
        row.case.id: (label, row_words(row).partition(",")[0])
        for row, label in zip(rows, case_labels(rows), strict=True)
    }


def _name(found: Found) -> str:
    return f"{record_of(found).name} ({record_of(found).id})"


def _machine_words(found: Found) -> str:
    machine = record_of(found).machine
    usable, all_of_them = machine.get("usable_cpus", "?"), machine.get("cpus", "?")
    return f"{machine.get('cpu', 'a CPU without a name')}, {usable} of {all_of_them} CPUs"
