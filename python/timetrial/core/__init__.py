"""The typed face of the compiled core: what touches a contender is C++, and Python reaches it here."""

from __future__ import annotations

from timetrial.core.native import load_core

load_core()

# The modules below take `_core` from this package: it must be loaded first.
from timetrial.core import random  # noqa: E402
from timetrial.core.backend import Backend, BackendDescription, SettingReading  # noqa: E402
from timetrial.core.clock import clock_cost_ns, now_ns  # noqa: E402
from timetrial.core.cpu import Peak, cpu_flags, measure_peak_flops  # noqa: E402
from timetrial.core.errors import BackendError, NetworkError  # noqa: E402
from timetrial.core.libraries import Libraries, Library, LibraryFacts  # noqa: E402
from timetrial.core.loop import Loop, Segment  # noqa: E402
from timetrial.core.native import (  # noqa: E402
    BackendManifest,
    backend_manifests,
    child_path,
    exec_path,
    native_dir,
    runtime_dir,
)
from timetrial.core.network import (  # noqa: E402
    Input,
    LayerTraits,
    LeastBytes,
    Network,
    images_and_labels,
    layer_kinds,
    layer_traits,
    recurs,
)
from timetrial.core.observer import MappedLibrary, Observation, Observer, Thread  # noqa: E402
from timetrial.core.own_kinds import (  # noqa: E402
    Attribute,
    Layer,
    LayerDefinition,
    LayerParameter,
    layer_kind,
    own_kinds,
)
from timetrial.core.recorder import (  # noqa: E402
    Recorder,
    create_recorder_file,
    read_window,
    stamp_boundaries,
    stamp_times_ns,
)

__all__ = [
    "Attribute",
    "Backend",
    "BackendDescription",
    "BackendError",
    "BackendManifest",
    "Input",
    "Layer",
    "LayerDefinition",
    "LayerParameter",
    "LayerTraits",
    "LeastBytes",
    "Libraries",
    "Library",
    "LibraryFacts",
    "Loop",
    "MappedLibrary",
    "Network",
    "NetworkError",
    "Observation",
    "Observer",
    "Peak",
    "Recorder",
    "Segment",
    "SettingReading",
    "Thread",
    "backend_manifests",
    "child_path",
    "clock_cost_ns",
    "cpu_flags",
    "create_recorder_file",
    "exec_path",
    "images_and_labels",
    "layer_kind",
    "layer_kinds",
    "layer_traits",
    "measure_peak_flops",
    "native_dir",
    "now_ns",
    "own_kinds",
    "random",
    "read_window",
    "recurs",
    "runtime_dir",
    "stamp_boundaries",
    "stamp_times_ns",
]
