"""A history: a file of JSON lines that runs, races and pytest append to, and what it holds.

Many may write at once: the lines of one writer go behind the others' in one piece, under a lock where the
file system has locks. Whatever a reader cannot use is counted and said, never dropped in silence.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import from_json

from timetrial.changes.entry import SCHEMA_VERSION, Entry
from timetrial.errors import InputError, Unavailable
from timetrial.paths import user_path
from timetrial.records.files import open_regular

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LONGEST_LINE = 1 << 20  # bytes
MOST_LINES = 1_000_000


def append(path: str | Path, entries: Sequence[Entry]) -> Path:
    """Writes entries behind what a history has; makes the file. InputError: it cannot be written, or is no
    history."""
    target = user_path(path)
    text = "".join(f"{one.model_dump_json()}\n" for one in entries).encode()
    try:
        fd = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InputError(f"'{target}' is no regular file: a history is appended to a file of its own.")
        with contextlib.suppress(OSError):  # a file system without locks: one write is all there is
            fcntl.flock(fd, fcntl.LOCK_EX)
        _append_to(fd, target, text)
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        os.close(fd)
    return target


def _append_to(fd: int, target: Path, text: bytes) -> None:
    size = os.fstat(fd).st_size
    if size:
        first = os.pread(fd, LONGEST_LINE, 0).partition(b"\n")[0]
        if not first.lstrip().startswith(b"{"):
            raise InputError(
                f"'{target}' is no history: its first line is no JSON object. Give a file of its own."
            )
        if os.pread(fd, 1, size - 1) != b"\n":  # a writer was killed: its line ends here
            text = b"\n" + text
    written = os.write(fd, text)
    if written != len(text):  # the disk is full: half a line would be a torn one
        os.ftruncate(fd, size)
        raise OSError(28, "No space left on device")


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"The history '{path}' cannot be written: {error.strerror}. Choose another file.")


class History:
    """What a history file holds: `entries` in the order of time, and `notes` on what it has besides."""

    def __init__(self, path: Path, entries: Sequence[Entry], notes: Sequence[str]):
        self.path = path
        self.entries = sorted(entries, key=lambda one: one.when)
        self.notes = list(notes)

    @property
    def names(self) -> list[str]:
        """Of what was measured, each once."""
        return list(dict.fromkeys(one.name for one in self.entries))

    def sel(self, pattern: str) -> History:
        """The entries whose name fits: `*` stands for anything. InputError: none does."""
        found = [one for one in self.entries if fnmatchcase(one.name, pattern) or pattern == one.name]
        if not found:
            known = "; ".join(self.names[:10])
            raise InputError(f"No name in '{self.path}' fits '{pattern}'. The first names in it: {known}.")
        return History(self.path, found, self.notes)

    def to_pandas(self) -> pd.DataFrame:
        """One line per entry."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise Unavailable("tables need pandas: pip install 'timetrial[report]'") from None
        frame: pd.DataFrame = pd.DataFrame([one.model_dump() for one in self.entries])
        return frame

    def plot(self) -> Figure:
        """Each number with its interval over time, one panel per name; nothing is joined across machines or
        environments. InputError: there is no number."""
        from timetrial.changes.history_figure import history_figure

        return history_figure(self)

    def table(self) -> Any:
        """Each name with its last number, for rich."""
        from timetrial.changes.history_table import HistoryTable

        return HistoryTable(self)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


def history(path: str | Path) -> History:
    """What the history file holds. InputError: there is none, or nothing in it can be read."""
    target = user_path(path)
    entries, seen = [], set()
    troubles: Counter[str] = Counter()
    first: dict[str, int] = {}
    for number, line in _lines(target):
        found = _read(line)
        if isinstance(found, Entry):
            key = (found.record, found.series, found.when, found.estimate)
            if key not in seen:
                seen.add(key)
                entries.append(found)
                continue
            found = "repeat another one"
        troubles[found] += 1
        first.setdefault(found, number)
    notes = [_told(count, words, first[words]) for words, count in troubles.items()]
    if not entries:
        raise InputError(f"'{target}' holds no history: {'; '.join(notes) or 'it is empty'}.")
    return History(target, entries, notes)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line by line: the file may be huge. InputError: it cannot be read."""
    try:
        with open_regular(path) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if number > MOST_LINES:
                    raise InputError(f"'{path}' has more than {MOST_LINES} lines: split it, by year say.")
                while not line.endswith(b"\n") and (rest := file.readline(LONGEST_LINE + 1)):
                    line = line[:1] + b"\xff" * (LONGEST_LINE + 1) + rest[-1:]  # too long, whatever it says
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        raise InputError(
            f"There is no history '{path}'. These begin one: timetrial export last --format history -o "
            f"{path}; pytest --bench=full --bench-json={path}."
        ) from None
    except OSError as error:
        raise InputError(f"The history '{path}' cannot be read: {error.strerror}.") from None


def _read(line: bytes) -> Entry | str:
    """The entry of a line, or why there is none, to be said of several lines."""
    if len(line) > LONGEST_LINE:
        return f"longer than {LONGEST_LINE >> 20} MB"
    try:
        document = from_json(line, allow_inf_nan=False)
    except ValueError:
        return (
            "torn: no JSON, or with a number that is none" if line.endswith(b"\n") else "cut off at the end"
        )
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return "of a newer timetrial"
    try:
        return Entry.model_validate(document)
    except ValidationError:
        return "not of a history"


def _told(count: int, words: str, first: int) -> str:
    """'2 lines are torn, the first is line 7: left out'."""
    lines = "1 line is" if count == 1 else f"{count} lines are"
    if words.startswith("repeat"):
        lines, words = (
            ("1 line", "repeats another one") if count == 1 else (f"{count} lines", "repeat others")
        )
    return f"{lines} {words}, {'line' if count == 1 else 'the first is line'} {first}: left out"
