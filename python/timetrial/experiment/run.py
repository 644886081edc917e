"""timetrial.run(): an experiment from Python, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.errors import InputError
from timetrial.experiment.experiment import Experiment

if TYPE_CHECKING:
    from timetrial.records.results import Results


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment | None = None,
    /,
    *,
    results: str | Path = "results",
    quiet: bool = False,
    **keys: Any,
) -> Results:
    """Measures an experiment and returns its results.

    `experiment`: the name of a shipped one, a path to a TOML file, the document itself, an Experiment, or
    nothing (then the keys are the experiment). `keys` replace what it says, as on the command line; a list
    spans: threads=[1, 2]. Keys with a dot: **{"optimizer.learning_rate": 0.01}. Records go under `results`.
    """
    if isinstance(experiment, Experiment | Mapping):
        if keys:
            raise InputError(
                f"The experiment is given as {type(experiment).__name__}: put {', '.join(keys)} into it. "
                "Keys replace those of an experiment's name or path."
            )
        ready = experiment if isinstance(experiment, Experiment) else Experiment.from_dict(experiment)
    else:
        ready = Experiment.load(str(experiment) if experiment is not None else None, **keys)
    return ready.run(results=results, quiet=quiet)
