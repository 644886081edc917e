"""timetrial: an honest benchmarking engine for deep-learning training.

    import timetrial as tt

    results = tt.run("first-look", threads=[1, 2])      # an experiment by name or path, keys replaced
    results = tt.run(network="mlp", backend="eigen")    # complete without a file
    results.sel(backend="eigen", threads=1)             # a part of it
    results.to_pandas("cases")                          # also "launches" and "steps"
    results.plot.step_times()
    tt.profile("first-look", backend="pytorch")         # where a step's time goes, layer by layer
    tt.race("pytorch", "onednn", network="lenet5")      # is the difference real? a verdict
    tt.race(make_before, make_after).plot()             # of two functions of yours that make a training step
    results = tt.load("last")                           # an earlier run or race; also by folder or id
    results = tt.resume("7f3a")                         # what is missing of one that was ended
    tt.compare("7f3a", "last")                          # what changed from an earlier one; which rows moved
    tt.history("history.jsonl").plot()                  # numbers over time, as CI and pytest append them
    tt.doctor()                                         # what is ready, what is missing, what cures it
    tt.tune(network="mlp", backend=["pytorch", "onednn"], threads=[1, 2])     # the fastest way, by a race
    tt.fits(network="mlp", backend=["eigen", "pytorch"])    # the smallest memory in which a step still runs
    tt.largest_batch("2GB", network="lenet5", backend="pytorch")    # predicted, searched, and confirmed
    tt.libraries()                                      # BLAS, OpenMP ... that this process has loaded
    with tt.settings(threads=1): ...                    # of this process's libraries, for a while

An `Experiment` is the same before it runs; a `Recorder` stamps steps of your own code. Errors that are
yours to mend are `InputError`. Names are imported when they are first used: `import timetrial` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "run": "timetrial.experiment.run",
    "profile": "timetrial.experiment.run",
    "race": "timetrial.races",
    "load": "timetrial.results.loading",
    "resume": "timetrial.races.resuming",
    "compare": "timetrial.changes.comparison",
    "Comparison": "timetrial.changes.comparison",
    "history": "timetrial.changes.history",
    "History": "timetrial.changes.history",
    "doctor": "timetrial.experiment.doctor",
    "libraries": "timetrial.in_process.loaded",
    "settings": "timetrial.in_process.settings",
    "SettingsWarning": "timetrial.in_process.settings",
    "tune": "timetrial.tuning",
    "fits": "timetrial.fitting",
    "largest_batch": "timetrial.scaling",
    "Experiment": "timetrial.experiment.experiment",
    "Results": "timetrial.results.results",
    "Profile": "timetrial.results.profile",
    "Race": "timetrial.races",
    "Side": "timetrial.races",
    "Recorder": "timetrial.core",
    "layer_kind": "timetrial.core",
    "LayerDefinition": "timetrial.core",
    "LayerParameter": "timetrial.core",
    "Layer": "timetrial.core",
    "Attribute": "timetrial.core",
    "TimetrialError": "timetrial.errors",
    "InputError": "timetrial.errors",
    "Unavailable": "timetrial.errors",
    "MeasurementError": "timetrial.errors",
}

__all__ = [
    "Attribute",
    "Comparison",
    "Experiment",
    "History",
    "InputError",
    "Layer",
    "LayerDefinition",
    "LayerParameter",
    "MeasurementError",
    "Profile",
    "Race",
    "Recorder",
    "Results",
    "SettingsWarning",
    "Side",
    "TimetrialError",
    "Unavailable",
    "__version__",
    "compare",
    "doctor",
    "fits",
    "history",
    "largest_batch",
    "layer_kind",
    "libraries",
    "load",
    "profile",
    "race",
    "resume",
    "run",
    "settings",
    "tune",
]

if TYPE_CHECKING:
    from timetrial.changes.comparison import Comparison, compare
    from timetrial.changes.history import History, history
    from timetrial.core import Attribute, Layer, LayerDefinition, LayerParameter, Recorder, layer_kind
    from timetrial.errors import InputError, MeasurementError, TimetrialError, Unavailable
    from timetrial.experiment.doctor import doctor
    from timetrial.experiment.experiment import Experiment
    from timetrial.experiment.run import profile, run
    from timetrial.in_process.loaded import libraries
    from timetrial.in_process.settings import SettingsWarning, settings
    from timetrial.races import Race, Side, race
    from timetrial.races.resuming import resume
    from timetrial.results.loading import load
    from timetrial.results.profile import Profile
    from timetrial.results.results import Results
    from timetrial.scaling import largest_batch
    from timetrial.tuning import tune


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'timetrial' has no attribute '{name}'")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
