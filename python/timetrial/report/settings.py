"""What settings there are, for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.report.columns import Grid

if TYPE_CHECKING:
    from timetrial.contenders.known_settings import KnownSetting


def settings_table(found: Sequence[KnownSetting]) -> RenderableType:
    """A line for each."""
    rows = [[one.name, _values(one), one.default, ", ".join(one.contenders)] for one in found]
    more = Text("how each is applied and read back: timetrial settings NAME")
    return Group(Grid(("setting", "values", "default", "of"), rows), more)


def one_setting(one: KnownSetting) -> RenderableType:
    """All there is to know."""
    facts = {
        "what": one.words,
        "values": _values(one),
        "default": one.default,
        "of": ", ".join(one.contenders),
        "applied": one.applied,
        "read back": one.read,
    }
    return Grid((one.name, ""), [[title, words] for title, words in facts.items()], wraps=True)


def _values(one: KnownSetting) -> str:
    """Those it can have; else those that its words name."""
    named = re.search(rf"\b{re.escape(one.name)}=([^\s;:]+)", one.words)
    return ", ".join(one.values) or (f"such as {named[1].rstrip(',')}" if named else "a number")
