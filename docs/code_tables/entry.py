"""A table of the reference: its entries, how it is written, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_SPECIAL = re.compile(r"([\\|*_<>\[\]$#~])")


@dataclass(frozen=True)
class Entry:
    """A name and what it is; `more`: cells of the columns between the two."""

    name: str
    words: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """`titles`: of the name, of the columns between, of the words."""

    titles: tuple[str, ...]
    entries: Sequence[Entry]

    def markdown(self, anchor: str) -> str:
        """The table. Each row can be linked as `#ANCHOR-NAME`."""
        lines = [self.titles, tuple("---" for _ in self.titles)]
        for one in self.entries:
            place = f"{anchor}-{re.sub(r'[^a-z0-9]+', '-', one.name.lower()).strip('-')}"
            name = f"`{_in_code(one.name)}`{{#{place}}}"
            lines.append((name, *map(text, one.more), text(one.words)))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(words: str) -> str:
    """Words in a cell: what stands in backticks stays code, nothing else means anything."""
    parts = " ".join(words.split()).split("`")
    if len(parts) % 2 == 0:  # a backtick without its fellow
        return _SPECIAL.sub(r"\\\1", " ".join(words.split())).replace("`", "\\`")
    return "".join(
        f"`{_in_code(part)}`" if place % 2 else _SPECIAL.sub(r"\\\1", part)
        for place, part in enumerate(parts)
    )


def _in_code(words: str) -> str:
    return words.replace("|", "\\|")


def faults(table: Table, names: Iterable[str] = ()) -> list[str]:
    """What is wrong: entries without words or twice, and of `names` those without an entry."""
    listed = [one.name for one in table.entries]
    found = [f"{one.name}: no description" for one in table.entries if not one.words.strip()]
    found += [f"{name}: listed twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    return found + [f"{name}: no entry" for name in names if name not in listed]
