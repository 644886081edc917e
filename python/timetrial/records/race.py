"""What a race leaves on disk, and where. SCHEMA.md explains every field.

results/<id>/race.json                          written before the first pair
results/<id>/proof/<case>/...                   as for an experiment
results/<id>/pairs/<nnn>/pair.json              when the pair is over
results/<id>/pairs/<nnn>/<side>/record.json     one launch of each side, with stamps.bin and losses.bin
results/<id>/ended.json                         written last; taken away where an interrupted race goes on
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from timetrial.errors import InputError
from timetrial.records.files import write_once
from timetrial.records.metric import Metric
from timetrial.records.model import ExperimentRecord, Model
from timetrial.records.store import read_record, to_bytes, write_begun

Stage = Literal["judge", "confirm"]
Gate = Literal["median", "mean"]
Verdict = Literal["better", "worse", "same", "inconclusive"]

RACE_FILE = "race.json"
PAIR_FILE = "pair.json"
END_FILE = "ended.json"


class RuleRecord(Model):
    """analysis.verdict.Rule, as it was."""

    min_effect: float
    equivalence: float
    looks: list[int]
    confidence: float
    errors: list[float] | None = None  # of each look, in one direction; None: as in version 0.1
    trim: float = 0.2  # share of pairs that is cut off at either end
    gate: Gate = "median"  # of `log_ratios`, what verdicts stand on


class RaceRecord(Model):
    """What was asked. The sides are the experiment's cases, the first of them the base."""

    schema_version: Literal[1] = 1
    experiment: ExperimentRecord
    metric: Metric
    rule: RuleRecord
    rounds: int  # turns of each side in a pair, at least, unless they are long
    confirm: bool  # every verdict of `confirms` is raced once more
    confirms: tuple[Verdict, ...] = ("worse",)  # older races: that alone
    isolated: bool  # whole launches in alternation; False: alive together, taking turns
    why_isolated: str | None = None
    goes_on: bool = False  # that is why: something of a side goes on while it is stopped
    extends: bool = False  # its budget may double, once, where only the confirmation is missing
    trees: dict[str, str] = Field(default_factory=dict)  # case -> its checkout, where one is of a revision


class PairRecord(Model):
    """One launch of each side, and what they say: ln(challenger / base) of the metric."""

    number: int
    stage: Stage
    sides: list[str]  # cases, the base first
    rounds: list[list[int]]  # who ran when: positions in `sides`
    processors: list[int] | None = None  # on which all sides ran; None: wherever the kernel put them
    log_ratios: dict[str, dict[str, float]]  # challenger -> statistic ("median", "mean", "p25") -> value
    void: str | None = None  # why it does not count
    seconds: float | None = None  # from its first start to its last turn
    turns_s: float | None = None  # of these, its rounds
    # challenger -> standard deviation of ln(challenger / base) of one round
    scatter: dict[str, float] = Field(default_factory=dict)
    span: int = 1  # its turns are whole multiples of so many steps, behind those that do not count
    look: bool = False  # the clock asked for a look behind it, in the place of the next planned one


class RaceEnd(Model):
    """How a race ended."""

    stop_reason: Literal["decided", "voids", "not raced", "interrupted", "budget"]
    reason: str | None = None  # in words, where it was not decided
    seconds: float
    extended: bool = False  # its budget was doubled to confirm a verdict


def clock_looks(pairs: Sequence[PairRecord], challenger: str, stage: Stage) -> list[int]:
    """After how many of a challenger's pairs that count the clock asked for a look."""
    counting = [
        one for one in pairs if one.stage == stage and one.void is None and challenger in one.log_ratios
    ]
    return [number for number, one in enumerate(counting, 1) if one.look]


def write_race(folder: Path, record: RaceRecord) -> None:
    """race.json."""
    write_begun(folder / RACE_FILE, record)


def rewrite_race(folder: Path, record: RaceRecord) -> None:
    """race.json of a race whose sides cannot take turns, which shows in a pair of them."""
    write_once(folder / RACE_FILE, to_bytes(record), replaces=True)


def pair_folder(folder: Path, number: int) -> Path:
    """Of a pair, numbered from 0."""
    return folder / "pairs" / f"{number:03d}"


def write_pair(folder: Path, record: PairRecord) -> None:
    """pair.json of a race's folder."""
    write_once(pair_folder(folder, record.number) / PAIR_FILE, to_bytes(record))


def write_end(folder: Path, record: RaceEnd) -> None:
    """ended.json: the last file of a race."""
    write_once(folder / END_FILE, to_bytes(record))


def remove_end(folder: Path) -> None:
    """Of a race that was interrupted, before it goes on."""
    (folder / END_FILE).unlink(missing_ok=True)


def next_pair(folder: Path) -> int:
    """A number that no pair has, not even one that never ended."""
    return max((int(one.name) for one in folder.glob("pairs/*") if one.name.isdigit()), default=-1) + 1


def read_race(folder: Path) -> RaceRecord:
    """race.json."""
    return read_record(folder / RACE_FILE, RaceRecord)


def read_pairs(folder: Path) -> tuple[list[PairRecord], list[str]]:
    """All pairs that ended, in order; and what is to be said of those whose record cannot be read."""
    pairs, damaged = [], []
    for file in sorted(folder.glob(f"pairs/*/{PAIR_FILE}")):
        try:
            pairs.append(read_record(file, PairRecord))
        except InputError as error:
            damaged.append(str(error))
    return pairs, damaged


def read_end(folder: Path) -> RaceEnd | None:
    """ended.json; None: the race was killed."""
    file = folder / END_FILE
    return read_record(file, RaceEnd) if file.is_file() else None


def is_race(folder: Path) -> bool:
    """Whether a folder holds a race."""
    return (folder / RACE_FILE).is_file()
