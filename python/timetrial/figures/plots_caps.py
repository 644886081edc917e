"""The matrix of caps as a figure: who runs, who adapts, who fails, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timetrial.adaptation.matrix import CapsMatrix, Cell
from timetrial.figures.plots_style import MUTED, QUESTIONS, color, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RUNS, _ADAPTS, _CAPPED, _FAILS = "runs", "adapts", "capped", "fails otherwise"
_COLORS = {_RUNS: color(2), _ADAPTS: color(4), _CAPPED: color(1), _FAILS: color(3)}


def caps_figure(matrix: CapsMatrix, title: str = "") -> Figure:
    """A field for each contender and cap; colors say what happened, words how."""
    height = 1.6 + 0.55 * len(matrix.contenders)
    figure, (panel,) = new_figure(2.4 + 2.3 * len(matrix.caps), height)
    for line, cells in enumerate(matrix.cells):
        for column, cell in enumerate(cells):
            kind = _kind(cell)
            shade = _COLORS.get(kind or "", MUTED)
            panel.bar(column, 0.9, 0.94, line - 0.45, color=shade, alpha=0.45 if kind else 0.15, label=kind)
            panel.annotate(_words(cell), (column, line), ha="center", va="center", fontsize=8)
    panel.set_xticks(range(len(matrix.caps)), matrix.caps)
    panel.set_yticks(range(len(matrix.contenders)), matrix.contenders)
    panel.set_xlim(-0.5, len(matrix.caps) - 0.5)
    panel.set_ylim(len(matrix.contenders) - 0.45, -0.55)
    panel.set_xlabel("memory.cap")
    panel.tick_params(length=0)
    panel.spines[["left", "bottom"]].set_visible(False)
    handles, words = panel.get_legend_handles_labels()
    once = dict(zip(words, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    panel.set_title(title or QUESTIONS["caps"], loc="left", fontsize=12)
    return figure


def _kind(cell: Cell | None) -> str | None:
    if cell is None or cell.outcome in (None, "unavailable"):
        return None
    if cell.outcome == "ok":
        return _ADAPTS if cell.is_adapted else _RUNS
    return _CAPPED if cell.outcome in ("capped", "oom") else _FAILS


def _words(cell: Cell | None) -> str:
    """On two lines at most."""
    return "" if cell is None else cell.words.replace(": ", "\n", 1).replace(" behind ", "\nbehind ", 1)
