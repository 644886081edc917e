"""A figure as a file: a picture, or a page of HTML that needs no network."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from timetrial.errors import InputError, MeasurementError
from timetrial.figures.plots_style import new_figure
from timetrial.paths import user_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGE = (".html", ".htm")


def write_figure(path: str | Path, draw: Callable[[], Figure], title: str, notes: list[str]) -> Path:
    """Draws into `path`; a page of HTML says the notes too. InputError: no figure can become this file, or
    there is nothing to draw. Unavailable: matplotlib is not installed, or Jinja for a page."""
    target = user_path(path)
    canvas = new_figure(1.0, 1.0)[0].canvas
    kinds = sorted([*(f".{kind}" for kind in canvas.get_supported_filetypes()), *_PAGE])
    if target.suffix.lower() not in kinds:
        raise InputError(
            f"--output is '{target}': expected a name that ends with one of: {', '.join(kinds)}."
        )
    if not target.resolve().parent.is_dir():
        raise InputError(f"--output is '{target}': there is no folder '{target.resolve().parent}'.")
    if target.exists() and not target.is_file():
        raise InputError(f"--output is '{target}', which is no regular file.")
    import matplotlib

    # parse_math: a name with two dollar signs is a name, not a formula.
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that a font lacks
        figure = draw()
        try:
            if target.suffix.lower() in _PAGE:
                target.write_text(_page(figure, title, notes), encoding="utf-8", errors="replace")
            else:
                figure.savefig(target, dpi=130)
        except OSError as error:
            raise MeasurementError(f"'{target}' cannot be written: {error.strerror}.") from None
    return target


def _page(figure: Figure, title: str, notes: list[str]) -> str:
    from timetrial.page.figures import drawn
    from timetrial.page.page import rendered
    from timetrial.page.parts import Block, Section

    blocks = [Block("Figure", figures=drawn("figure", title, lambda: figure))]
    return rendered(title, [Section("figure", title, "", "", [], notes, blocks)], [])
