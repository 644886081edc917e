"""Tables as text and as HTML."""

from __future__ import annotations

import io
from typing import Any, Protocol

from rich.console import Console


class HasTable(Protocol):
    """Results, a profile: anything with a table for rich."""

    def table(self) -> Any:
        """A renderable."""


def to_text(results: HasTable, width: int = 120) -> str:
    """The table without colors."""
    console = Console(
        file=io.StringIO(), width=width, color_system=None, highlight=False, force_jupyter=False
    )
    console.print(results.table())
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.rstrip("\n")


def to_html(results: HasTable, width: int = 140) -> str:
    """The table for a notebook: colors inline, no script."""
    console = Console(file=io.StringIO(), width=width, record=True, highlight=False, force_jupyter=False)
    console.print(results.table())
    code = (
        '<pre style="font-family:monospace; line-height:1.35; white-space:pre; overflow-x:auto">{code}</pre>'
    )
    return console.export_html(inline_styles=True, code_format=code)
