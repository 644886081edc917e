"""What was measured before: the records of a folder, the last one first."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from timetrial.errors import InputError
from timetrial.records import sessions, store
from timetrial.records.race import is_race
from timetrial.report.numbers import percent_interval
from timetrial.results.race import Duel, Race


@dataclass(frozen=True)
class Entry:
    """One record. `when` in the time zone of this machine; `found`: the verdicts, or how far it came."""

    id: str
    when: str
    what: str
    found: str


def history(results: Path, most: int | None = None) -> tuple[list[Entry], int]:
    """At most so many entries (None: all), and how many records there are. InputError: no such folder."""
    if not results.is_dir():
        raise InputError(f"There is no folder '{results}': nothing was measured into it yet.")
    folders = store.newest_first(results)
    return [_entry(folder) for folder in folders[:most]], len(folders)


def _entry(folder: Path) -> Entry:
    """A record that cannot be read is one too."""
    try:
        return _race(folder) if is_race(folder) else _run(folder)
    except InputError as error:
        return Entry(folder.name, "", "damaged", str(error))


def _race(folder: Path) -> Entry:
    race = Race(folder)
    base, *others = race.names.values()
    what = f"race {', '.join(others)} against {base}"
    found = _state(folder) or "; ".join(map(_verdict, race.duels))
    return Entry(folder.name, _when(race.record.experiment.created_at), what, found)


def _verdict(duel: Duel) -> str:
    """'make_after: worse, +190.7 % [+174.9, +207.7]'."""
    if duel.verdict is None or duel.effect is None:
        return f"{duel.challenger}: not judged"
    effect = duel.effect
    seen = percent_interval(effect.estimate, effect.low, effect.high)
    return f"{duel.challenger}: {duel.verdict}, {seen}"


def _run(folder: Path) -> Entry:
    record = store.read_experiment(folder)
    verb = "profile" if record.profiles else "run"
    words = record.again.partition(f"timetrial {verb} ")[2] or record.name
    cases = f"{len(record.cases)} case{'s' if len(record.cases) != 1 else ''}"
    return Entry(folder.name, _when(record.created_at), f"{verb} {words}", _state(folder) or cases)


def _state(folder: Path) -> str:
    return {"running": "is being measured", "unfinished": "unfinished", "unknown": "unfinished?"}.get(
        sessions.state(folder), ""
    )


def _when(created_at: str) -> str:
    return f"{datetime.datetime.fromisoformat(created_at).astimezone():%Y-%m-%d %H:%M}"
