"""Tidy tables of a run or a race: those of to_pandas(), with the types of the dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timetrial.errors import Unavailable
from timetrial.exports.dictionary import BY_TABLE, column_of
from timetrial.records.samples import SAMPLES_FILE
from timetrial.report.table import shown
from timetrial.results.results import Results

if TYPE_CHECKING:
    import pandas as pd

    from timetrial.exports.columns import Kind
    from timetrial.results.race import Race

# Nullable everywhere: no number becomes 0 or another type where one of its column is missing.
_DTYPES: dict[Kind, str] = {"text": "string", "number": "Float64", "integer": "Int64", "yes or no": "boolean"}


def tables_of(found: Results | Race) -> dict[str, pd.DataFrame]:
    """Name -> table. Unavailable: there is no pandas."""
    try:
        import pandas  # noqa: F401 - whoever asks is told what to install for exports, not for figures
    except ModuleNotFoundError:
        raise Unavailable("csv and parquet need pandas: pip install 'timetrial[export]'") from None
    frames = _of_run(found) if isinstance(found, Results) else _of_race(found)
    return {name: _typed(name, frame) for name, frame in frames.items()}


def was_looked_at(found: Results | Race) -> bool:
    """Whether the supervisor has left samples of some launch."""
    return isinstance(found, Results) and any(
        (one.folder / SAMPLES_FILE).is_file() and one.record.outcome != "damaged" for one in found.launches
    )


def _of_run(results: Results) -> dict[str, pd.DataFrame]:
    cases, launches = results.to_pandas("cases"), results.to_pandas("launches")
    steps = results.to_pandas("steps")
    proven = {row.case.id: shown(row).is_proven for row in results.rows}
    records = {one.record.id: one.record for one in results.launches}
    cases["reason"] = [row.reason for row in results.rows]
    if len(launches):
        launches["reason"] = [records[name].reason for name in launches["launch"]]
    if len(steps):
        steps["outcome"] = steps["launch"].map({name: one.outcome for name, one in records.items()})
    tables = {"cases": cases, "launches": launches, "steps": steps}
    if was_looked_at(results):
        tables["samples"] = samples = results.to_pandas("samples")
        samples["outcome"] = samples["launch"].map({name: one.outcome for name, one in records.items()})
    for name, frame in tables.items():
        if len(frame):
            # A repetition (A/A) shares the proof of the first, which may lie outside of a selection.
            frame["proven"] = frame["case"].map(proven).fillna(False)
        tables[name] = _without_failed(name, frame)
    return tables


def _of_race(race: Race) -> dict[str, pd.DataFrame]:
    pairs, rounds = race.to_pandas(), race.rounds()
    proven = {}
    for case in race.cases:
        parity = race.parity(case.id)
        proven[race.names[case.id]] = parity is not None and parity.status == "passed"
    if len(pairs):
        pairs["proven"] = pairs["base"].map(proven) & pairs["challenger"].map(proven)
    if len(rounds):
        rounds["proven"] = rounds["side"].map(proven)
    return {"pairs": pairs, "rounds": rounds}


def _without_failed(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Findings of what is not ok are no findings: a step time of threads that were not in force, a step count
    of 0 where nothing ran. Single steps stay: they are evidence, with their outcome beside them."""
    if not len(frame):
        return frame
    failed = frame["outcome"] != "ok"
    measured = [name for name, one in BY_TABLE[table].items() if one.measured and name in frame]
    frame[measured] = frame[measured].astype(object).mask(failed)
    return frame


def _typed(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """With every column of the dictionary, whatever was found, in the order of the frame."""
    import pandas as pd

    missing = [name for name in BY_TABLE[table] if name not in frame]
    frame = frame.reindex(columns=[*frame.columns, *missing])
    for name in frame.columns:
        column = column_of(table, str(name))
        values = frame[name].astype(object)
        if column.kind == "text":
            values = values.map(str, na_action="ignore")
        frame[name] = values.where(values.notna(), pd.NA).astype(_DTYPES[column.kind])
    return frame
