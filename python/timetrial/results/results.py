"""Results: the records of an experiment, to look at."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from timetrial.analysis.heats import turn_times
from timetrial.analysis.phases import phases_of
from timetrial.analysis.resources import Curves, curves_of
from timetrial.analysis.step_times import step_times_of
from timetrial.analysis.steps import Steps, steady_before_turns, steps_of
from timetrial.analysis.summary import Launch, Row, Summary, summarize
from timetrial.cautions import Caution, Remark
from timetrial.errors import InputError, nearest
from timetrial.records import sessions, store
from timetrial.records.model import TIMED, ExperimentRecord, LaunchRecord
from timetrial.records.reference import facts_of
from timetrial.records.samples import Samples, read_samples
from timetrial.statistics.growth import lasting_change

if TYPE_CHECKING:
    import pandas as pd

    from timetrial.adaptation.matrix import CapsMatrix
    from timetrial.analysis.comparison import Contrast
    from timetrial.figures.plots import Plots
    from timetrial.report.table import CasesTable
    from timetrial.results.choosing import Chosen
    from timetrial.results.profile import Profile
    from timetrial.scaling.lines import Lines

PandasKind = Literal["cases", "launches", "steps", "samples"]


@dataclass(frozen=True)
class LaunchFiles:
    """A finished launch: its record, and its folder with the arrays."""

    record: LaunchRecord  # as it was written
    folder: Path  # with the arrays

    def steps(self) -> Steps:
        """Every step of the launch."""
        if not self.record.segments:
            return steps_of(self.record, np.empty(0, np.uint64), np.empty(0))
        return steps_of(self.record, store.read_stamps(self.folder), store.read_losses(self.folder))

    def samples(self) -> Samples | None:
        """What the supervisor saw, look by look; None: it did not look, or nothing of it is believed."""
        return read_samples(self.folder) if self.record.outcome != "damaged" else None

    def curves(self) -> Curves | None:
        """Memory and processors along the launch; None: nobody looked, or too seldom."""
        samples = self.samples()
        return curves_of(self.record, self.steps(), samples) if samples else None


class Results:
    """What an experiment found. Read from its records; nothing here measures.

    `rows` has one entry per case. `sel()` narrows the view; ratios stay those of the whole experiment.
    """

    def __init__(self, path: Path):
        self.path = path
        self.experiment: ExperimentRecord = store.read_experiment(path)
        self.whole: Results = self  # the whole experiment, whatever is selected
        self._selected: frozenset[str] | None = None

    @cached_property
    def _read(self) -> tuple[list[LaunchFiles], list[str]]:
        """All finished launches, and what is to be said of records that cannot be read."""
        found, damaged = [], []
        for folder in store.launch_folders(self.path):
            try:
                found.append(LaunchFiles(store.read_launch(folder), folder))
            except InputError as error:
                damaged.append(Caution.DAMAGED.words(error=error))
        return found, damaged

    @cached_property
    def launches(self) -> list[LaunchFiles]:
        """All finished launches of the selected cases, proofs first. Where files do not agree with a record,
        its outcome is `damaged` and it has no steps."""
        return [
            one for one in self.whole._read[0] if self._selected is None or one.record.case in self._selected
        ]

    def launches_of(self, row: Row) -> list[LaunchFiles]:
        """Those of one row, and where another case learned for it, that one's learning launches."""
        own = [one for one in self.whole.launches if one.record.case == row.case.id]
        if row.accuracy_from is None:
            return own
        lent = [one for one in self.whole.launches if one.record.case == row.accuracy_from]
        return own + [one for one in lent if one.record.purpose == "learning"]

    @cached_property
    def _summary(self) -> Summary:
        return summarize(self.experiment, [analyzed(one) for one in self.launches])

    @property
    def rows(self) -> list[Row]:
        """One row per selected case, in the experiment's order."""
        return [row for row in self.all_rows if self._selected is None or row.case.id in self._selected]

    @property
    def all_rows(self) -> list[Row]:
        """One row per case of the whole experiment, selected or not: a reference may lie outside."""
        return self.whole._summary.rows

    @property
    def reference(self) -> dict[str, Any] | None:
        """The axes that the reference fixes."""
        return self.whole._summary.reference

    @property
    def warnings(self) -> list[str]:
        """What concerns the whole experiment."""
        return [one.text for one in self.remarks]

    @property
    def remarks(self) -> list[Remark]:
        """What concerns the whole experiment, each with the cases that it is about, if not all."""
        anew = f"`{self.experiment.again}` measures anew"
        cure = anew if self.experiment.profiles else sessions.resuming(self.path, "run")
        said = [*sessions.said_of(self.path, cure), *self.whole._read[1]]
        return [*map(Remark, said), *self.whole._summary.remarks]

    def sel(self, **axes: Any) -> Results:
        """The cases with these values of axes or settings; a list takes any of its values. `callable` may be
        the function itself."""
        from timetrial.contenders.functions import with_words

        given = with_words(axes)
        axes = {"backend" if key == "callable" else key: value for key, value in given.items()}
        rows = self.rows
        known = {key for row in rows for key in facts_of(row.case)}
        for key in axes:
            if key not in known:
                raise InputError(f"These results have no axis '{key}'.{nearest(key, known)}")
        kept = frozenset(row.case.id for row in rows if _selects(facts_of(row.case), axes))
        if not kept:
            asked = ", ".join(f"{key}={value!r}" for key, value in given.items())
            raise InputError(f"No case has {asked}. The table shows what there is.")
        part = copy.copy(self)
        part._selected = kept
        vars(part).pop("launches", None)  # those of this selection
        return part

    def compare(self, base: Chosen, challenger: Chosen) -> Contrast:
        """Is the challenger's step time better, worse or the same? By block-wise pairs of launches and the
        rule of a race. Each row: results.sel(...), an entry of `rows`, its id, or its axes as a dict.

        InputError for rows that are not of this experiment (another day or machine cannot be compared: race
        them), and for rows that do different work.
        """
        from timetrial.analysis.comparison import contrast
        from timetrial.figures.plots_data import case_labels
        from timetrial.results.choosing import row_of

        chosen = row_of(self, base), row_of(self, challenger)
        rows = self.whole.rows
        labels = {row.case.id: label for row, label in zip(rows, case_labels(rows), strict=True)}
        return contrast(*chosen, (labels[chosen[0].case.id], labels[chosen[1].case.id]))

    def to_json(self) -> dict[str, Any]:
        """The JSON of `timetrial run --json`: plain dicts, lists, numbers, words and None."""
        from timetrial.results.contract import to_json

        return to_json(self)

    def to_pandas(self, kind: PandasKind = "cases") -> pd.DataFrame:
        """A table with one line per case, per launch, per step or per look of the supervisor (samples)."""
        from timetrial.results.frames import to_pandas

        return to_pandas(self, kind)

    def export(self, format: str, path: str | Path | None = None, *, force: bool = False) -> Path | str:
        """In the format of another tool: "csv" and "parquet" into the folder `path`; "google-benchmark",
        "bencher" and "github-action" into the file `path`, or as text without one; "history" behind what the
        file `path` has; "mlflow" and "tensorboard" into a folder of that tool. Selected cases only.
        `force`: over files that exist. InputError: no such format, or a path that cannot be taken.
        Unavailable: what the format needs (pandas, pyarrow, MLflow, TensorBoard) is not installed."""
        from timetrial.exports import export

        return export(self, format, path, force=force)

    def table(self, *, columns: Sequence[str] = ()) -> CasesTable:
        """The table of the command line, for rich. `columns`: more of them, such as cpus, faults, waiting.
        InputError: there is no such column."""
        from timetrial.report.table import CasesTable

        return CasesTable(self, columns=columns)

    def lines(self, over: str = "batch_size") -> Lines:
        """Memory and time of a step as lines over `batch_size`, `width` or `depth`, for each contender: a
        fixed part, and a part for each, with intervals. InputError: none was measured at three values."""
        from timetrial.scaling.lines import lines_of

        return lines_of(self.rows, over)

    @property
    def caps(self) -> CapsMatrix:
        """What each contender does under each cap on memory, for results that span `memory.cap`. InputError
        if they do not."""
        from timetrial.adaptation.matrix import caps_matrix

        return caps_matrix(self.rows)

    @property
    def profile(self) -> Profile:
        """Where the steps' time goes, of an experiment that was profiled. InputError if it was not."""
        from timetrial.results.profile import Profile

        if not self.experiment.profiles:
            raise InputError(
                f"'{self.path}' has no profile launches: `timetrial profile` and tt.profile() make them."
            )
        return Profile(self)

    @property
    def plot(self) -> Plots:
        """Figures: plot.step_times() and the like (needs matplotlib)."""
        from timetrial.figures.plots import Plots

        return Plots(self)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        from timetrial.report.rendering import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from timetrial.report.rendering import to_html

        return to_html(self)


def analyzed(files: LaunchFiles) -> Launch:
    """A launch with what its stamps say."""
    record, steps = files.record, files.steps()
    times = step_times_of(steps, record.purpose) if record.purpose in TIMED else None
    is_steady = times is not None and times.steady is not None and times.steady.accepted
    counting = times.counting if times is not None and is_steady else steady_before_turns(steps)
    answers = store.read_answers(files.folder) if record.evaluations else None
    phases = phases_of(record, steps, counting)
    is_own = "unprovable" in record.backend.get("flags", ())
    change = lasting_change(steps.duration_ns) if is_own else None  # what else there is shows its work
    return Launch(record, times, str(files.folder), phases, answers, turn_times(record, steps), change=change)


def _selects(facts: dict[str, Any], axes: dict[str, Any]) -> bool:
    for key, wanted in axes.items():
        values = list(wanted) if isinstance(wanted, list | tuple | set | range) else [wanted]
        if str(facts.get(key)) not in {str(value) for value in values}:
            return False
    return True
