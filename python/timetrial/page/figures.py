"""Figures as SVG within a page: text stays text, ids are the figure's own, the ground is the page's."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from timetrial.errors import InputError
from timetrial.figures.plots_style import new_figure
from timetrial.page.parts import Figure

if TYPE_CHECKING:
    import matplotlib.figure

_DPI = 100  # of the clouds of points, which are pictures in the figure
_REFERENCES = re.compile(r'(\bid="|href="#|url\(#)')


def figures_available() -> None:
    """Unavailable without matplotlib."""
    new_figure(1.0, 1.0)


def drawn(anchor: str, words: str, draw: Callable[[], matplotlib.figure.Figure]) -> list[Figure]:
    """The figure; none where there is nothing to draw. `anchor`: no two figures of a page have the same."""
    import matplotlib

    picture = io.StringIO()
    # parse_math: a name with two dollar signs is a name, not a formula.
    style = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": anchor, "text.parse_math": False})
    with style, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that a font lacks: the reader's fonts draw them
        try:
            figure = draw()
        except InputError:
            return []
        silent = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(picture, format="svg", transparent=True, dpi=_DPI, metadata=silent)
    svg = picture.getvalue()
    svg = svg[svg.index("<svg") :]  # what comes before belongs to a file of its own
    return [Figure(_REFERENCES.sub(rf"\g<1>{anchor}-", svg), words)]
