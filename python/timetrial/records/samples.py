"""The tables that the supervisor writes beside a record: what the contender used, look by look. Their columns
are in SCHEMA.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from timetrial.errors import InputError
from timetrial.records.files import mark_of, read_regular
from timetrial.records.model import FileMark

SAMPLES_FILE = "samples.tsv"
THREADS_FILE = "thread_samples.tsv"
MOST_BYTES = 1 << 30  # a day of 20 looks a second takes 250 MB
_NAME = "name"  # the only column that holds no numbers, and the last of its table
COLUMNS = (
    "time_ns", "cpu_ns", "wait_ns", "slices", "threads", "processes", "anonymous_bytes", "shared_bytes",
    "file_bytes", "peak_bytes", "minor_faults", "major_faults", "read_bytes", "written_bytes", "own_cpu_ns",
)  # fmt: skip
_THREAD_COLUMNS = ("time_ns", "pid", "tid", "cpu_ns", "wait_ns", "slices")
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Samples:
    """By column, one number for each look."""

    columns: dict[str, Integers]  # name -> its numbers

    def __len__(self) -> int:
        return len(self.columns["time_ns"])

    def __getitem__(self, column: str) -> Integers:
        return self.columns[column]


@dataclass(frozen=True)
class ThreadSamples:
    """Of one thread, those looks at which it had run or waited since the one before."""

    pid: int
    tid: int
    name: str
    time_ns: Integers
    cpu_ns: Integers
    wait_ns: Integers
    slices: Integers


def read_samples(folder: Path) -> Samples | None:
    """Of a launch's folder; None: nobody looked. InputError: the table is damaged."""
    file = folder / SAMPLES_FILE
    table = _table(file, _lines(file), COLUMNS)
    return None if table is None else Samples({name: table[:, place] for place, name in enumerate(COLUMNS)})


def read_thread_samples(folder: Path) -> list[ThreadSamples]:
    """Thread by thread, as they were first seen; none where nobody looked."""
    file = folder / THREADS_FILE
    lines = _lines(file)
    table = _table(file, lines, _THREAD_COLUMNS)
    if table is None or lines is None:
        return []
    names = _names(lines)
    found = {}
    for pid, tid in dict.fromkeys((int(one[1]), int(one[2])) for one in table):
        own = (table[:, 1] == pid) & (table[:, 2] == tid)
        numbers = table[own]
        name = names[int(np.flatnonzero(own)[0])] if names else ""
        found[pid, tid] = ThreadSamples(pid, tid, name, numbers[:, 0], *numbers[:, 3:].T)
    return list(found.values())


def sample_marks(folder: Path) -> dict[str, FileMark]:
    """What the record says of the tables, when the supervisor has ended; none where there are none."""
    marks = {}
    for name in (SAMPLES_FILE, THREADS_FILE):
        try:
            marks[name] = mark_of(read_regular(folder / name, MOST_BYTES))
        except OSError:
            continue
    return marks


def _lines(file: Path) -> list[list[str]] | None:
    """A header, then whole lines: the last one may have been cut off."""
    try:
        text = read_regular(file, MOST_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"'{file}' cannot be read: {error.strerror}.") from None
    return [line.split("\t") for line in text.split("\n")[:-1]]


def _table(file: Path, lines: list[list[str]] | None, columns: tuple[str, ...]) -> Integers | None:
    """The numbers of these columns. Further ones are a later version's."""
    if lines is None:
        return None
    header, *rows = lines or [[]]
    missing = [name for name in columns if name not in header]
    if missing:
        raise InputError(f"'{file}' is damaged: it has no column '{missing[0]}'.")
    places = [header.index(name) for name in columns]
    try:
        numbers = [[int(row[place]) for place in places] for row in rows if len(row) == len(header)]
        if len(numbers) != len(rows):
            raise ValueError("a line has too few or too many columns")
        table = np.array(numbers, np.int64).reshape(len(rows), len(columns))
    except (ValueError, OverflowError) as error:
        raise InputError(f"'{file}' is damaged: {error}.") from None
    if np.any(np.diff(table[:, 0]) < 0):
        raise InputError(f"'{file}' is damaged: its times go backward.")
    return table


def _names(lines: list[list[str]]) -> list[str]:
    header, *rows = lines or [[]]
    return [row[-1] for row in rows] if header[-1:] == [_NAME] else []
