"""The figure of a profile: a stacked bar per case, layer by layer, in absolute time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timetrial.analysis.profile import ALL_LAYERS, StepProfile
from timetrial.errors import InputError
from timetrial.figures.plots_data import figure_title
from timetrial.figures.plots_style import MUTED, QUESTIONS, ground, ink, new_figure, time_unit
from timetrial.report.numbers import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from timetrial.results.profile import Profile

# Layers with less than this of a step in every case are drawn together.
SMALL = 0.03
OTHERS = "other layers"
# Paul Tol's "muted" scheme: nine colors that every kind of color vision tells apart, for many layers at once.
_LAYERS = ("#332288", "#88CCEE", "#CC6677", "#DDCC77", "#117733", "#882255", "#44AA99", "#999933", "#AA4499")
_UPDATE, _OTHERS_COLOR = "#555555", "#BBBBBB"
# Directions by hatch and strength: both gradients in one piece have both of their hatches.
_LOOKS: dict[str, dict[str, Any]] = {
    "forward": {"alpha": 1.0},
    "loss": {"alpha": 1.0},
    "backward": {"alpha": 0.6, "hatch": "xxxx"},
    "backward_data": {"alpha": 0.7, "hatch": "////"},
    "backward_weights": {"alpha": 0.5, "hatch": r"\\\\"},
    "update": {"alpha": 1.0},
    "reorder": {"alpha": 0.35, "hatch": "...."},
}
_WORDS = {
    "forward": "forward, loss, update",
    "backward": "backward",
    "backward_data": "backward, data",
    "backward_weights": "backward, weights",
    "reorder": "change of format",
}


@dataclass(frozen=True)
class Piece:
    """One part of a bar."""

    layer: str
    direction: str
    start_s: float
    seconds: float


@dataclass(frozen=True)
class Bar:
    """A case: its pieces end to end, the step that was not profiled, and the step at 100 % of peak."""

    label: str
    pieces: list[Piece]
    plain_s: float | None
    peak_s: float | None
    percent_of_peak: float | None

    @property
    def end_s(self) -> float:
        """Where the bar ends: the layers together."""
        return self.pieces[-1].start_s + self.pieces[-1].seconds


def bars(profile: Profile) -> list[Bar]:
    """What the figure draws. InputError if no case has a profile."""
    cases = zip(profile.labels, profile.cases, strict=True)
    profiled = [(label, case.step) for label, case in cases if case.step]
    if not profiled:
        raise InputError("No case has a profile to draw. The table says why: profile.table().")
    small = _small_layers([step for _, step in profiled])
    return [_bar(label, step, small) for label, step in profiled]


def profile_figure(profile: Profile) -> Figure:
    """One bar per case. Same layer, same color; the direction is the hatch."""
    drawn = bars(profile)
    figure, (panel,) = new_figure(10.0, 2.3 + 0.62 * len(drawn))
    scale, unit = time_unit(max(bar.end_s for bar in drawn))
    colors = _colors(drawn)
    longest = max(max(bar.end_s, bar.plain_s or 0.0) for bar in drawn) * scale
    for place, bar in enumerate(drawn):
        _draw(panel, place, bar, scale, colors)
        end = max(bar.end_s, bar.plain_s or 0.0) * scale
        panel.text(end + 0.012 * longest, place, _words(bar, scale, unit), va="center", fontsize=10)
    panel.set_yticks(range(len(drawn)), [bar.label for bar in drawn])
    panel.set_ylim(len(drawn) - 0.45, -0.6)
    panel.set_xlim(0, 1.22 * longest)
    panel.set_xlabel(f"time of a training step [{unit}]\n{difference(drawn)}".rstrip())
    panel.grid(axis="x", alpha=0.25)
    panel.set_axisbelow(True)
    rows = [case.row for case in profile.cases]
    title = figure_title(profile.experiment, rows, QUESTIONS["profile"])
    panel.set_title(title, loc="left", fontsize=12)
    _legend(figure, drawn, colors)
    return figure


def difference(drawn: Sequence[Bar]) -> str:
    """Why a bar and its line do not end at one place, and by how much they differ here."""
    apart = [bar.end_s / bar.plain_s - 1 for bar in drawn if bar.plain_s]
    if not apart:
        return ""
    least, most = f"{100 * min(apart):+.0f}", f"{100 * max(apart):+.0f}"
    share = f"{least} %" if least == most else f"{least} to {most} %"
    return (
        "A bar adds up what layers take while each is timed; the line is the whole step, timed from outside. "
        f"Bar against line: {share},\nthe cost of timing layers (longer), or work between layers (shorter)."
    )


def _small_layers(steps: list[StepProfile]) -> frozenset[str]:
    """Layers that are small in every case; at least two, or they would better have their own name."""
    largest: dict[str, float] = {}
    for step in steps:
        shares: dict[str, float] = {}
        for row in step.rows:
            layer = _layer(row.node, row.direction)
            shares[layer] = shares.get(layer, 0.0) + row.share
        for layer, share in shares.items():
            largest[layer] = max(largest.get(layer, 0.0), share)
    small = frozenset(layer for layer, share in largest.items() if share < SMALL and layer != "update")
    return small if len(small) > 1 else frozenset()


def _layer(node: str, direction: str) -> str:
    """What gets a color: a layer, or the update of them all, which some stacks do in one call."""
    return "update" if direction == "update" or node == ALL_LAYERS else node


def _bar(label: str, step: StepProfile, small: frozenset[str]) -> Bar:
    """Pieces by layer, small layers behind the named ones, the update last."""
    sums: dict[tuple[str, str], float] = {}
    for row in step.rows:
        layer = _layer(row.node, row.direction)
        key = (OTHERS, "forward") if layer in small else (layer, row.direction)
        sums[key] = sums.get(key, 0.0) + row.time_ns.median * 1e-9
    last = {OTHERS: 1, "update": 2}
    pieces: list[Piece] = []
    start = 0.0
    for layer, direction in sorted(sums, key=lambda key: last.get(key[0], 0)):
        pieces.append(Piece(layer, direction, start, sums[layer, direction]))
        start += sums[layer, direction]
    plain = step.plain_step_ns.median if step.plain_step_ns else None
    return Bar(
        label,
        pieces,
        plain_s=None if plain is None else plain * 1e-9,
        peak_s=None if step.peak_ns is None else step.peak_ns * 1e-9,
        percent_of_peak=None if plain is None else step.percent_of_peak(plain),
    )


def _colors(drawn: list[Bar]) -> dict[str, str]:
    layers = list(dict.fromkeys(piece.layer for bar in drawn for piece in bar.pieces))
    named = [layer for layer in layers if layer not in (OTHERS, "update")]
    colors = {layer: _LAYERS[place % len(_LAYERS)] for place, layer in enumerate(named)}
    gray = {OTHERS: _OTHERS_COLOR, "update": _UPDATE}
    return colors | {name: tone for name, tone in gray.items() if name in layers}


def _draw(panel: Axes, place: int, bar: Bar, scale: float, colors: dict[str, str]) -> None:
    for piece in bar.pieces:
        panel.barh(
            place,
            piece.seconds * scale,
            left=piece.start_s * scale,
            height=0.62,
            color=colors[piece.layer],
            edgecolor=ground(),
            linewidth=0.5,
            **_LOOKS[piece.direction],
        )
    if bar.plain_s is not None:
        panel.plot([bar.plain_s * scale] * 2, [place - 0.4, place + 0.4], color=ink(), linewidth=1.6)
    if bar.peak_s is not None:
        panel.plot([bar.peak_s * scale], [place - 0.42], marker="v", color=ink(), markersize=7, clip_on=False)


def _words(bar: Bar, scale: float, unit: str) -> str:
    words = f"{significant((bar.plain_s or bar.end_s) * scale)} {unit}"
    return words if bar.percent_of_peak is None else f"{words}, {bar.percent_of_peak:.0f} % of peak"


def _legend(figure: Figure, drawn: list[Bar], colors: dict[str, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    dark: dict[str, Any] = {"linestyle": "", "color": ink()}
    entries: list[Any] = [Patch(facecolor=tone, label=layer) for layer, tone in colors.items()]
    seen = {piece.direction for bar in drawn for piece in bar.pieces}
    for direction, words in _WORDS.items():
        if direction in seen:
            entries.append(Patch(facecolor=MUTED, edgecolor=ground(), label=words, **_LOOKS[direction]))
    if any(bar.plain_s is not None for bar in drawn):
        line = {"marker": "|", "markersize": 11, "markeredgewidth": 1.6, **dark}
        entries.append(Line2D([], [], label="the step, not profiled", **line))
    if any(bar.peak_s is not None for bar in drawn):
        entries.append(Line2D([], [], marker="v", markersize=7, label="at 100 % of measured peak", **dark))
    figure.legend(
        handles=entries,
        loc="outside lower center",
        ncols=6,
        fontsize=9,
        columnspacing=1.2,
        handletextpad=0.5,
        frameon=False,
    )
