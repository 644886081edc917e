"""Two results of the same work from different times: what changed around them, and which rows moved.

Times of different days are no verdict: between them lies whatever the machine did. A ratio to a reference
that was alive together with its row is free of that level, so it comes first; the row's own time, and that of
the reference, are said besides. A race of both, together, is what settles it (settling.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from timetrial.changes.facts import changes_between, machine_of, stands_on, state_of
from timetrial.changes.findings import Finding, Key, findings_of, key_of, record_of
from timetrial.errors import InputError
from timetrial.records.metric import METRICS, Metric
from timetrial.records.model import CaseRecord, ExperimentRecord
from timetrial.results.names import side_names
from timetrial.results.race import Race
from timetrial.results.results import Results
from timetrial.statistics.movement import Movement, beyond_chance, movement

if TYPE_CHECKING:
    from timetrial.changes.comparison_table import ComparisonTable
    from timetrial.changes.settling import Settling

Changes = dict[str, tuple[str, str]]  # name -> what it was, and is
# In words that tables and JSON share. `moved` says nothing about why.
State = Literal["slower", "faster", "not shown", "not known", "failed", "mended", "other work"]
WORSE: tuple[State, ...] = ("slower", "failed")
EXIT_CODES = {"nothing worse": 0, "worse": 1, "not known": 3}


@dataclass(frozen=True)
class Pair:
    """A row that both have. `ratio`: how far its ratio to the reference moved; `level`: its own metric, None
    of two machines. `changes`: of what it stands on."""

    name: str  # of the row, in both results
    old: Finding  # what the earlier result found
    new: Finding  # what the later one found
    state: State  # whether and how it moved
    reason: str | None  # why it is not known, or what failed
    ratio: Movement | None  # of the ratio to its reference; None: not known
    level: Movement | None  # of the number itself; None: not known
    reference: str | None  # the name of what the ratio is to
    changes: Changes = field(default_factory=dict)  # what changed around this row
    level_moved: bool = False  # beyond both intervals, and beyond chance

    @property
    def accuracy(self) -> Literal["lower", "higher"] | None:
        """How its accuracy moved, if neither interval reaches the other; a machine's level is not in it."""
        old, new = self.old.accuracy, self.new.accuracy
        if old is None or new is None or None in (old.low, old.high, new.low, new.high):
            return None
        if new.high < old.low:  # type: ignore[operator]
            return "lower"
        return "higher" if new.low > old.high else None  # type: ignore[operator]

    @property
    def is_reference(self) -> bool:
        """Whether it has no ratio because others have theirs to it."""
        return self.reference is None


class Comparison:
    """What changed from one result to a later one. Reads records, measures nothing."""

    def __init__(self, old: Results | Race, new: Results | Race):
        self.old, self.new = old, new
        self.records: tuple[ExperimentRecord, ExperimentRecord] = (record_of(old), record_of(new))
        self.metric: Metric = _metric_of(old, new)
        self._check_kind()
        before = findings_of(old)
        # One reference for both: that of the older one.
        fixed = old.reference if isinstance(old, Results) else None
        after = findings_of(new, fixed)
        self._matched, only_old, only_new = _match(before, after)
        if not self._matched:
            raise InputError(self._nothing_in_common(before, after))
        cases = [two[1].case for two in self._matched]
        cases += [
            one.case for one in (*only_old, *only_new) if one.case.id not in {case.id for case in cases}
        ]
        self._names = side_names(cases)
        self.only_old = [self._name_of(one.case) for one in only_old]
        self.only_new = [self._name_of(one.case) for one in only_new]

    @property
    def same_machine(self) -> bool:
        """Whether both are of machines that agree in all that decides about times, as far as records say."""
        return machine_of(self.records[0]) == machine_of(self.records[1])

    @cached_property
    def changes(self) -> Changes:
        """Of the machine, timetrial, and how it was measured: what concerns all rows."""
        old, new = self.records
        machines = changes_between(machine_of(old), machine_of(new))
        return {**machines, **changes_between(state_of(old), state_of(new))}

    @cached_property
    def rows(self) -> list[Pair]:
        """Rows that both have, in the order of the newer one."""
        found = [self._pair(old, new) for old, new in self._matched]
        ratios = beyond_chance([one.ratio for one in found])
        levels = beyond_chance([one.level for one in found])
        return [
            _judged(one, ratio_moved=ratio, level_moved=level, good=METRICS[self.metric].good)
            for one, ratio, level in zip(found, ratios, levels, strict=True)
        ]

    @property
    def moved(self) -> list[Pair]:
        """Rows that are slower or faster against their reference than they were."""
        return [one for one in self.rows if one.state in ("slower", "faster")]

    @cached_property
    def settling(self) -> dict[str, Settling]:
        """Of each row that moved, by name: the race that would settle it, or why there is none here."""
        from timetrial.changes.settling import settle

        wanted = [one for one in self.rows if one.state in ("slower", "faster") or one.level_moved]
        return {one.name: settle(self, one) for one in wanted}

    @property
    def exit_code(self) -> int:
        """Of `timetrial compare`: 0 no row is worse (slower against its reference, less accurate, failed), 1
        one is, 3 of no row it can be known."""
        states = [one.state for one in self.rows]
        if any(state in WORSE for state in states) or any(one.accuracy == "lower" for one in self.rows):
            return EXIT_CODES["worse"]
        known = any(state not in ("not known", "other work") for state in states)
        return EXIT_CODES["nothing worse" if known else "not known"]

    def to_json(self) -> dict[str, Any]:
        """The JSON of `timetrial compare --json`: plain dicts, lists, numbers, words and None."""
        from timetrial.changes.contract import to_json

        return to_json(self)

    def table(self) -> ComparisonTable:
        """For rich."""
        from timetrial.changes.comparison_table import ComparisonTable

        return ComparisonTable(self)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)

    # --------------------------------------------------------------------------------------------------

    def _check_kind(self) -> None:
        """InputError: these two cannot be compared."""
        kinds = ["run" if isinstance(one, Results) else "race" for one in (self.old, self.new)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"OLD is a {kinds[0]} and NEW a {kinds[1]}: compare two runs, or two races. "
                "`timetrial list results` says which is what."
            )
        for word, one in (("OLD", self.old), ("NEW", self.new)):
            if isinstance(one, Results) and one.experiment.profiles:
                raise InputError(
                    f"{word} ('{one.path}') is a profile, whose steps are slowed by looking. Compare runs."
                )
        if self.records[0].id == self.records[1].id and folder_of(self.old) == folder_of(self.new):
            raise InputError(f"OLD and NEW are the same record, '{folder_of(self.new)}'.")

    def _nothing_in_common(self, before: Sequence[Finding], after: Sequence[Finding]) -> str:
        sides = [[dict(one.key) for one in rows] for rows in (before, after)]
        values = [
            {key: sorted({row.get(key, "-") for row in rows}) for row in rows for key in row}
            for rows in sides
        ]
        differing = [
            f"{key} ({', '.join(values[0].get(key, ['-']))}; {', '.join(values[1].get(key, ['-']))})"
            for key in dict.fromkeys([*values[0], *values[1]])
            if not set(values[0].get(key, ["-"])) & set(values[1].get(key, ["-"]))
        ]
        why = f" They differ in {', '.join(differing)}." if differing else " No two agree in all axes."
        return (
            f"'{folder_of(self.old)}' and '{folder_of(self.new)}' have no row in common, so nothing can be "
            f"compared.{why} Measure the same again: {self.records[0].again}"
        )

    def _name_of(self, case: CaseRecord) -> str:
        return self._names.get(case.id) or case.who

    def _pair(self, old: Finding, new: Finding) -> Pair:
        name = self._name_of(new.case)
        changes = changes_between(stands_on(old.case, old.launches), stands_on(new.case, new.launches))
        state, reason = _failure(old, new)
        ratio = level = None
        if state is None:
            ratio, reason = _ratio(old, new)
            if old.level is not None and new.level is not None and self.same_machine:
                level = movement(old.level, new.level)
        reference = self._name_of(new.against) if new.against is not None else None
        return Pair(name, old, new, state or "not known", reason, ratio, level, reference, changes)


def compare(
    old: str | Path | Results | Race, new: str | Path | Results | Race, *, results: str | Path = "results"
) -> Comparison:
    """What changed from one run to a later one of the same work, or from one race to another.

    Each: results, a race, the folder of a record, its id under `results`, or "last". InputError: they have no
    row in common, are of different kinds, or cannot be read.
    """
    return Comparison(_loaded(old, results), _loaded(new, results))


def folder_of(found: Results | Race) -> Path:
    """Of its record."""
    return found.path if isinstance(found, Results) else found.folder


def _loaded(one: str | Path | Results | Race, results: str | Path) -> Results | Race:
    from timetrial.records import store
    from timetrial.results.loading import load

    return load(store.find(one, Path(results))) if isinstance(one, str | Path) else one


def _metric_of(old: Results | Race, new: Results | Race) -> Metric:
    metrics = [_raced(one) for one in (old, new)]
    if metrics[0] != metrics[1]:
        raise InputError(
            f"OLD raced {metrics[0]}, NEW raced {metrics[1]}: different metrics cannot be compared."
        )
    return metrics[0]


def _raced(found: Results | Race) -> Metric:
    return "step_time" if isinstance(found, Results) else found.record.metric


def _match(
    before: Sequence[Finding], after: Sequence[Finding]
) -> tuple[list[tuple[Finding, Finding]], list[Finding], list[Finding]]:
    """Rows of both by what they are; those of one alone."""
    olds: dict[Key, list[Finding]] = {}
    for one in before:
        olds.setdefault(one.key, []).append(one)
    pairs, only_new = [], []
    for one in after:
        same = olds.get(one.key)
        if same:
            pairs.append((same.pop(0), one))
        else:
            only_new.append(one)
    return pairs, [one for rest in olds.values() for one in rest], only_new


def _failure(old: Finding, new: Finding) -> tuple[State | None, str | None]:
    """Where one of them has no number, or they do not do the same work."""
    if (old.level is None) != (new.level is None):
        one, state = (new, "failed") if new.level is None else (old, "mended")
        # What was never measured or is not here did not fail.
        known = one.outcome not in (None, "unavailable", "damaged")
        return (state if known else "not known"), _why(one)  # type: ignore[return-value]
    if old.level is None:
        return "not known", _why(new)
    work = [(one.case.parameters, _forward_products(one.case)) for one in (old, new)]
    if None not in (*work[0], *work[1]) and work[0] != work[1]:
        return "other work", (
            f"its network had {work[0][0]} parameters and {work[0][1]} multiply-accumulates in its forward "
            f"pass, and has {work[1][0]} and {work[1][1]}"
        )
    return None, None


def _forward_products(case: CaseRecord) -> int | None:
    """None: an older record. What counts as work on the way back has changed between versions."""
    return sum(one.multiply_accumulates.get("forward", 0) for one in case.layers) if case.layers else None


def _why(one: Finding) -> str:
    from timetrial.report.numbers import first_line

    words = first_line(one.reason)
    return f"{one.outcome or 'not measured'}{f': {words}' if words else ''}"


def _ratio(old: Finding, new: Finding) -> tuple[Movement | None, str | None]:
    if new.against is None and old.against is None:
        return None, "it is the reference"
    if new.against is None or old.against is None or key_of(new.against) != key_of(old.against):
        return None, "its reference is another one"
    if old.ratio is None or new.ratio is None:
        return None, "its reference has no time in both"
    found = movement(old.ratio, new.ratio)
    return found, None if found is not None else "one launch carries no interval: launches=4"


def _judged(one: Pair, *, ratio_moved: bool, level_moved: bool, good: str) -> Pair:
    if one.state != "not known" or one.old.level is None or one.new.level is None:
        return one
    if one.ratio is None:
        return replace(one, level_moved=level_moved)
    state: State = "not shown"
    if ratio_moved:
        state = "slower" if (one.ratio.estimate > 0) == (good == "lower") else "faster"
    return replace(one, state=state, reason=None, level_moved=level_moved)


def facts_by_row(comparison: Comparison) -> Mapping[tuple[str, str, str], list[str]]:
    """(what, old, new) -> names of the rows that it changed for."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in comparison.rows:
        for what, (old, new) in one.changes.items():
            found.setdefault((what, old, new), []).append(one.name)
    return found
