"""Everything that can be named in an experiment, with a few words for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from timetrial.cases import sources
from timetrial.cases.case import Case, Workload
from timetrial.contenders.known_settings import known_settings
from timetrial.errors import InputError, TimetrialError, Unavailable, nearest
from timetrial.library_files import known_libraries
from timetrial.toml import read_toml

if TYPE_CHECKING:
    from timetrial.datasets import KnownDataset

Entries = dict[str, str]  # name -> words

# Native backends, each with what it is.
NATIVE_WORDS = {
    "cblas": "any CBLAS library, opened by its path",
    "eigen": "products by Eigen, header-only",
    "libtorch": "ATen and autograd of LibTorch, without Python; built at first use",
    "null": "no arithmetic: tests the instrument against a known truth",
    "onednn": "oneDNN, in blocked formats from layer to layer",
    "reference": "double precision in plain loops: the judge of the others",
}


def catalog(what: str | None = None) -> dict[str, Entries]:
    """title -> entries, of one list or of all."""
    lists: dict[str, Callable[[], Entries]] = {
        "experiments": _experiments,
        "backends": _backends,
        "networks": _networks,
        "datasets": _datasets,
        "libraries": _libraries,
        "settings": _settings,
    }
    if what is not None and what not in lists:
        raise InputError(f"There is no list '{what}'.{nearest(what, [*lists, 'results'])}")
    return {title: entries() for title, entries in lists.items() if what in (None, title)}


def _experiments() -> Entries:
    return {
        name: str(read_toml(path, "The experiment").get("question", ""))
        for name, path in sources.shipped().items()
    }


def _backends() -> Entries:
    from timetrial import contenders, environments

    found = {}
    frameworks = environments.shipped_frameworks()
    for name in contenders.known_backends():
        if name in frameworks:
            found[name] = environments.summary(frameworks[name]).words
            continue
        try:
            contender = contenders.resolve(Case(name, Workload("mlp", "synthetic", 1, {})), build=False)
            isa = f" ({contender.isa})" if contender.isa else ""
            found[name] = f"native, ready{isa}: {NATIVE_WORDS[name]}"
        except contenders.NotBuiltYet as waiting:
            found[name] = f"native, {waiting}"
        except Unavailable as lacking:
            found[name] = f"unavailable: {lacking}"
        except TimetrialError as error:
            found[name] = f"broken: {error}"
    found["callable=package.module:function"] = "your own: a function that makes a step"
    return found


def _networks() -> Entries:
    from timetrial.workloads import NETWORKS, load_network

    found = {}
    for name in NETWORKS:
        network = load_network(name)
        words = f"{network.facts.words}; " if network.facts else ""
        found[name] = f"{words}by default {network.dataset}, batch {network.batch_size}"
    return {**found, **OWN_NETWORKS}


OWN_NETWORKS = {
    "FILE.toml": "your own: nodes {name, kind, inputs, attributes}",
    "package.module:function": "your own: a function that returns the same",
}


def _datasets() -> Entries:
    """The same on every machine: what is ready here, `timetrial datasets list` says."""
    from timetrial.datasets import known_datasets

    return {name: _dataset_words(one) for name, one in known_datasets().items()}


def _dataset_words(one: KnownDataset) -> str:
    shape = f", {'x'.join(map(str, one.shape))}" if one.shape else ""
    if one.sources:
        origin = f": `timetrial datasets install {one.name}`, or your folder (`dataset_folder`)"
    else:
        origin = ": from your folder (`dataset_folder`)" if one.yours else ""
    sized = f"; `{one.name}@64` has 64 {one.sized}" if one.sized else ""
    return f"{one.words}{shape}{origin}{sized}"


def _libraries() -> Entries:
    found = {
        name: f"{library.words}: {'ready' if library.path() else f'missing ({library.cure})'}"
        for name, library in known_libraries().items()
    }
    return {**found, "/path/to/library.so": "your own"}


def _settings() -> Entries:
    return {one.name: one.words for one in known_settings()}
