"""The matrix of caps as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from timetrial.adaptation.matrix import CAP, CapsMatrix
from timetrial.report.columns import Grid


def caps_table(matrix: CapsMatrix) -> RenderableType:
    """Each contender under each cap."""
    rows = [
        [name, *(cell.words if cell else "" for cell in cells)]
        for name, cells in zip(matrix.contenders, matrix.cells, strict=True)
    ]
    return Group(
        Grid((CAP, *matrix.caps), rows, wraps=False),
        Text("adapts: runs with less memory than without a cap; behind: how far it came", style="dim"),
    )
