"""`results.plot`: the figures of an experiment. Matplotlib: show, change or savefig() them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timetrial.figures.plots_data import figure_title, learning_cases, speed_cases
from timetrial.figures.plots_style import QUESTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from timetrial.results.results import Results


class Plots:
    """Figures of results; of a part of them after results.sel(...)."""

    def __init__(self, results: Results):
        self._results = results

    def step_times(self) -> Figure:
        """The distribution of step times per case: every steady step, warm-up marked."""
        from timetrial.figures.plots_steps import step_times_figure

        return step_times_figure(speed_cases(self._results), self._title("step_times"))

    def step_series(self) -> Figure:
        """Step times along each launch: warm-up, drift and disturbances show here."""
        from timetrial.figures.plots_steps import step_series_figure

        return step_series_figure(speed_cases(self._results), self._title("step_series"))

    def learning(self) -> Figure:
        """Loss and accuracy, against steps and against time."""
        from timetrial.figures.plots_learning import learning_figure

        return learning_figure(learning_cases(self._results), self._title("learning"))

    def loss(self) -> Figure:
        """Training loss against steps and against time."""
        from timetrial.figures.plots_learning import loss_figure

        return loss_figure(learning_cases(self._results), self._title("loss"))

    def accuracy(self) -> Figure:
        """Test accuracy against steps and against time."""
        from timetrial.figures.plots_learning import accuracy_figure

        return accuracy_figure(learning_cases(self._results), self._title("accuracy"))

    def overhead(self, batch_size: int = 64) -> Figure:
        """What a step costs before it does any work, of contenders that ran with several batch sizes."""
        from timetrial.analysis.overhead import overheads
        from timetrial.figures.plots_overhead import overhead_figure

        return overhead_figure(overheads(self._results.rows), batch_size, self._title("overhead"))

    def resources(self) -> Figure:
        """Memory and processors along the launches that were looked at: resource launches, or those that
        learn."""
        from timetrial.figures.plots_resources import resource_cases, resources_figure

        return resources_figure(resource_cases(self._results), self._title("resources"))

    def caps(self) -> Figure:
        """What each contender does under each cap on memory: it runs, adapts or fails. For results that span
        `memory.cap`."""
        from timetrial.figures.plots_caps import caps_figure

        return caps_figure(self._results.caps, self._title("caps"))

    def lines(self, over: str = "batch_size") -> Figure:
        """Memory and CPU time of a step over batch size, width or depth, with a line for each contender."""
        from timetrial.figures.plots_lines import lines_figure

        return lines_figure(self._results.lines(over), self._title("lines"))

    def _title(self, figure: str) -> str:
        return figure_title(self._results.experiment, self._results.rows, QUESTIONS[figure])
