"""Everything that can be named in an experiment, with a few words for each."""

from __future__ import annotations

from collections.abc import Callable

from timetrial.cases import sources
from timetrial.cases.case import Case, Workload
from timetrial.cases.settings import SETTINGS
from timetrial.errors import InputError, TimetrialError, Unavailable, nearest
from timetrial.library_files import known_libraries
from timetrial.toml import read_toml

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

DATASET_WORDS = {
    "digits8": "scikit-learn's handwritten digits, 1x8x8",
    "digits28": "the same, resized to 1x28x28",
    "mnist": "IDX files from your folder: dataset_folder=FOLDER",
    "cifar10": "binary or pickled files from your folder: dataset_folder=FOLDER",
    "cifar100": "binary or pickled files from your folder: dataset_folder=FOLDER",
    "synthetic": "made here, with classes that can be learned, 1x28x28",
    "synthetic-cifar": "the same, 3x32x32",
    "synthetic-regression": "made here: images 1x8x8 and 16 features, 4 values to predict",
    "synthetic-codes-200": "made here: codes of 200 numbers in [0, 1], for an auto-encoder",
    "synthetic-codes-400": "the same of 400 numbers",
    "synthetic-codes-800": "the same of 800 numbers",
    "synthetic-codes-1000": "the same of 1000 numbers",
}


def _datasets() -> Entries:
    from timetrial.workloads import DATASETS

    return {name: DATASET_WORDS[name] for name in DATASETS}


def _libraries() -> Entries:
    found = {
        name: f"{library.words}: {'ready' if library.path() else f'missing ({library.cure})'}"
        for name, library in known_libraries().items()
    }
    return {**found, "/path/to/library.so": "your own"}


def _settings() -> Entries:
    from timetrial.control.libraries import LIBRARY_SETTINGS

    libraries = {
        one.name: f"{one.words}: {one.name}={one.default}, another name or a path" for one in LIBRARY_SETTINGS
    }
    own = {name: kind.words for name, kind in SETTINGS.items()}
    places = {name.partition(".")[0]: place for place, name in enumerate(own)}
    # Each library beside the other settings of its name.
    return dict(
        sorted({**own, **libraries}.items(), key=lambda one: places.get(one[0].partition(".")[0], len(own)))
    )
