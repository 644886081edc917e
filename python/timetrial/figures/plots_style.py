"""How all figures look: size, colors, units."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timetrial.errors import InputError, Unavailable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What each figure answers: its title.
QUESTIONS = {
    "step_times": "How long does a step take, and how sure is that?",
    "step_series": "Did step times settle, and stay?",
    "learning": "How does it learn, by steps and by time?",
    "loss": "How does the training loss fall?",
    "accuracy": "How does accuracy on test images rise?",
    "overhead": "How much of a step is overhead?",
    "lines": "What does a step cost, and what each sample more?",
    "resources": "What does it hold and use, and when?",
    "caps": "Does it crash or adapt, with less memory?",
    "profile": "Where does a step's time go?",
    "roofline": "How near is each layer to what the machine allows?",
}
# Okabe and Ito (2008): told apart by every kind of color vision. Without their black and yellow: each is lost
# on one of the grounds that a figure may have.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Equal contenders give equal curves: dashes let the lower one show through.
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
MUTED = "#8a8a8a"


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **keys: Any
) -> tuple[Figure, list[Axes]]:
    """A figure in inches and its panels row by row, without pyplot: no window, no state that stays behind.

    It shows itself as the last value of a notebook's cell, and saves with savefig().
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise Unavailable("figures need matplotlib: pip install 'timetrial[report]'") from None

    class NotebookFigure(Figure):
        """A figure with a picture of its own, whatever the notebook's matplotlib mode is."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **keys)
    axes: list[Axes] = list(panels.flat)
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=10)
    return figure, axes


def check_figure_file(path: Path, option: str = "--figure") -> None:
    """Before anything is measured: InputError if no figure can become this file, Unavailable without
    matplotlib."""
    figure, _ = new_figure(1.0, 1.0)
    kinds = sorted(figure.canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in kinds:
        raise InputError(f"{option} is '{path}': expected a name that ends with one of: {', '.join(kinds)}.")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{option} is '{path}': there is no folder '{path.resolve().parent}'.")


def ink() -> str:
    """What lines and marks of no case are drawn in: the color of the text, so that
    `matplotlib.style.context("dark_background")` is readable too."""
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


def ground() -> str:
    """What lies below everything."""
    import matplotlib

    return str(matplotlib.rcParams["axes.facecolor"])


def color(position: int) -> str:
    """The color of a case."""
    return COLORS[position % len(COLORS)]


def dashes(position: int) -> Any:
    """The line style of a case."""
    return DASHES[position % len(DASHES)]


def time_unit(seconds: float) -> tuple[float, str]:
    """How many of a unit make a second, and its name: for times of about this size."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * scale >= 1.0:
            return scale, unit
    return 1e9, "ns"


def wide_range(values: Sequence[float]) -> bool:
    """Whether values need a logarithmic axis to be read: all positive, more than a factor of 8 apart."""
    finite = [value for value in values if np.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) / min(finite) > 8


def plain_log_axis(axis: Any, low: float, high: float, seconds_per_unit: float | None = None) -> None:
    """A logarithmic axis with numbers as people write them: 0.1, 0.2, 0.5, 1, 2, 5.

    Of times (`seconds_per_unit` given) each number has its own unit: 500 ns, 20 µs, 1 ms.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    def words(value: float, _: object) -> str:
        if seconds_per_unit is None:
            return f"{value:g}"
        seconds = value * seconds_per_unit
        scale, unit = time_unit(seconds * 1.0001)
        return f"{seconds * scale:g} {unit}"

    subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(words))
    axis.set_minor_formatter(NullFormatter())
