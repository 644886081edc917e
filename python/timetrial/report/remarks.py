"""What stands below a table: what was seen, in which rows, and what to do about it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from timetrial.cautions import Caution, Remark, advice_for, advised, caution_of, sentences, together

if TYPE_CHECKING:
    from timetrial.analysis.summary import Row

MARK = "! "
LONGEST = 240  # characters of names: who wants to know more has each row's details


def remark_lines(remarks: Iterable[str], width: int) -> Iterator[Text]:
    """Each below a mark of its own, wrapped under itself."""
    for words in remarks:
        lines = [
            line
            for paragraph in words.splitlines()
            for line in textwrap.wrap(paragraph, max(width - len(MARK), 20), break_on_hyphens=False)
        ]
        for number, line in enumerate(lines):
            yield Text(f"{MARK if number == 0 else ' ' * len(MARK)}{line}", style="yellow")


def remarks_of(
    rows: Sequence[Row], whole: Iterable[Remark], axes: Sequence[str], word: Callable[[Row, str], str]
) -> list[str]:
    """What concerns the whole experiment, then what concerns rows, once for all that it concerns. `word`: the
    value of an axis of a row."""
    found = []
    for remark in whole:
        concerned = {row.case.id for row in rows if row.case.id in remark.cases}
        if remark.cases and not concerned:
            continue
        where = f"{rows_words(rows, concerned, axes, word)}: " if concerned else ""
        found.append(f"{where}{advised(remark.text)}")
    for texts, of in _alike(rows):
        where = rows_words(rows, {case for counts in of.values() for case in counts}, axes, word)
        found.append(f"{where}: {_counted(texts, of)}")
    one_launch = any(
        row.outcome == "ok" and row.step_time_ns is not None and row.step_time_ns.n == 1 for row in rows
    )
    return [*found, *([advised(Caution.ONE_LAUNCH.words())] if one_launch else [])]


_Counts = Mapping[str, Mapping[str, int]]  # text -> case -> how many of its launches say it


def _alike(rows: Sequence[Row]) -> Iterator[tuple[list[str], _Counts]]:
    """Texts that one caution has said, of the same subject where it has a `name`."""
    found: dict[object, dict[str, dict[str, int]]] = {}
    for row in rows:
        for text, launches in row.warnings.items():
            caution = caution_of(text)
            fields = caution.fields_of(text) if caution else None
            subject = text if caution is None else (caution, (fields or {}).get("name"))
            found.setdefault(subject, {}).setdefault(text, {})[row.case.id] = launches
    for of in found.values():
        yield list(of), of


def _counted(texts: Sequence[str], of: _Counts) -> str:
    """With the number of launches, where that is not one for each row."""
    rows = {case for counts in of.values() for case in counts}
    launches = sum(sum(counts.values()) for counts in of.values())
    text = together(texts)
    return sentences(f"{text} ({launches} launches)" if launches > len(rows) else text, advice_for(texts[0]))


def rows_words(
    rows: Sequence[Row], concerned: set[str], axes: Sequence[str], word: Callable[[Row, str], str]
) -> str:
    """'eigen 1', 'every row', 'every row but eigen 1', 'every row with threads 2 and onednn 1': the shortest
    that names them, or how many if that would fill lines. Of rows that were launched."""
    names = {row.case.id: " ".join(word(row, axis) for axis in axes) for row in rows}
    chosen = [row for row in rows if row.case.id in concerned]
    among = [row for row in rows if row.launches or row.case.id in concerned]
    others = [row for row in among if row.case.id not in concerned]
    listed = _and([names[row.case.id] for row in chosen])
    if len(chosen) == 1:
        return listed
    every = "every row" if len(among) == len(rows) else "every row that was launched"
    if not others:
        return every
    candidates = [listed, f"{every} but {_and([names[row.case.id] for row in others])}"]
    candidates.append(_and(list(_covered(chosen, others, axes, word, names))))
    shortest = min(candidates, key=len)
    if len(shortest) <= LONGEST:
        return shortest
    first = [names[row.case.id] for row in chosen[:2]]
    return f"{len(chosen)} of {len(among)} rows, {_and(first)} among them"


def _covered(
    chosen: Sequence[Row],
    others: Sequence[Row],
    axes: Sequence[str],
    word: Callable[[Row, str], str],
    names: Mapping[str, str],
) -> Iterator[str]:
    """By values of an axis that no other row has, the largest groups first; then the rest by name."""
    left = list(chosen)
    while left:
        groups = Counter((axis, word(row, axis)) for row in left for axis in axes)
        taken = {(axis, word(row, axis)) for row in others for axis in axes}
        free = [(count, group) for group, count in groups.items() if group not in taken and count > 1]
        if not free:
            break
        _, (axis, value) = max(free, key=lambda one: one[0])
        yield f"every row of {value}" if axis == "backend" else f"every row with {axis} {value}"
        left = [row for row in left if word(row, axis) != value]
    yield from (names[row.case.id] for row in left)


def sides_words(sides: Sequence[str], everyone: Collection[str]) -> str:
    """Of a race: 'eigen', 'eigen and onednn', 'both sides', 'all sides'."""
    if len(sides) == len(everyone) > 1:
        return "both sides" if len(sides) == 2 else "all sides"
    return _and(list(sides))


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
