"""Puts what comes from the code where a page has `<!-- table: NAME -->` or `<!-- text: NAME -->`."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from code_tables import TABLES, TEXTS

PLACE = re.compile(r"^<!-- (table|text): (\S+) -->$", re.MULTILINE)


def filled(source: str, where: str) -> str:
    """A page with everything in its place. ExtensionError: there is no such table."""

    def made(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "table" and name in TABLES:
            return TABLES[name]().markdown(name)
        if kind == "text" and name in TEXTS:
            return TEXTS[name]()
        known = ", ".join(sorted(TABLES if kind == "table" else TEXTS))
        raise ExtensionError(f"{where}: there is no {kind} '{name}'. Known: {known}.")

    return PLACE.sub(made, source)


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = filled(source[0], docname)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
