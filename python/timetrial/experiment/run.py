"""timetrial.run() and timetrial.profile(): an experiment from Python, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.errors import InputError
from timetrial.experiment.experiment import Experiment

if TYPE_CHECKING:
    from timetrial.results.profile import Profile
    from timetrial.results.results import Results

AnyExperiment = str | Path | Mapping[str, Any] | Experiment


def run(
    experiment: AnyExperiment | None = None,
    /,
    *,
    results: str | Path = "results",
    prove_again: bool = False,
    quiet: bool = False,
    **keys: Any,
) -> Results:
    """Measures an experiment and returns its results.

    `experiment`: the name of a shipped one, a path to a TOML file, the document itself, an Experiment, or
    nothing (then the keys are the experiment). `keys` replace what it says, as on the command line; a list
    spans: threads=[1, 2]. Keys with a dot: **{"optimizer.learning_rate": 0.01}. Records go under `results`.
    `prove_again`: no proof of an earlier run counts.
    """
    return _experiment(experiment, keys).run(results=results, prove_again=prove_again, quiet=quiet)


def profile(
    experiment: AnyExperiment | None = None,
    /,
    *,
    results: str | Path = "results",
    prove_again: bool = False,
    quiet: bool = False,
    **keys: Any,
) -> Profile:
    """Profiles a step of each case, layer by layer: where does its time go? Arguments as in run()."""
    return _experiment(experiment, keys).profile(results=results, prove_again=prove_again, quiet=quiet)


def _experiment(experiment: AnyExperiment | None, keys: Mapping[str, Any]) -> Experiment:
    if isinstance(experiment, Experiment | Mapping):
        if keys:
            raise InputError(
                f"The experiment is given as {type(experiment).__name__}: put {', '.join(keys)} into it. "
                "Keys replace those of an experiment's name or path."
            )
        return experiment if isinstance(experiment, Experiment) else Experiment.from_dict(experiment)
    return Experiment.load(str(experiment) if experiment is not None else None, **keys)
