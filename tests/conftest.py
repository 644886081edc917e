"""Shared by all tests. Its place makes `fakes`, `launching` and `shared` importable."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fakes
import pytest
import required
from fakes import FakeEngine

pytest_plugins = ["pytester"]  # for tests/testing; pytest takes it from the topmost conftest only
pytest_configure = required.pytest_configure
# Which data sets a machine has is no business of tests: those that need one install it into a place of their
# own.
os.environ["TIMETRIAL_DATASETS"] = str(Path(__file__).parent / "no-datasets")
# Nor is what earlier runs have proven, of the user or of other tests: those that are about it say so.
os.environ["TIMETRIAL_KEEP_PROOFS"] = "no"
# What runs in the background of a shell ignores SIGINT, and programs that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
RUNTIME_MODULES = (
    "contender",
    "data",
    "failures",
    "importing",
    "job",
    "loaded",
    "loading",
    "own_step",
    "score",
    "stacks",
    "symbolic_adapter",
    "symbolic_sequences",
    "timed",
    "timetrial_adapter",
    "timetrial_updates",
)


@pytest.fixture
def fake() -> FakeEngine:
    return FakeEngine()


@pytest.fixture(scope="session")
def workers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For what takes long to make (shared.made_once): of the whole session, where workers have theirs too."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def results_folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def raced(results_folder: Path, fake: FakeEngine) -> Callable[..., Any]:
    """raced("backend=fast,slow", metric=...): a race of scripted contenders."""
    from timetrial.experiment.experiment import load_words
    from timetrial.races import Race, run_race

    def run(*words: str, **keys: Any) -> Race:
        experiment = load_words(["network=mlp", *words], load_network=fakes.network)
        return run_race(experiment, results_folder, quiet=True, engine=fake.engine(), **keys)

    return run


@pytest.fixture
def compiled_once(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a framework compiles is kept from test to test: Theano and PyTensor take minutes for a network,
    nearly all of them for the same few operations. That proofs find an empty folder is proven elsewhere."""
    from timetrial.cases.case import Case
    from timetrial.contenders.compile_cache import SETTING, Compiled
    from timetrial.contenders.registry import Contender
    from timetrial.records.model import CompileCache

    @contextlib.contextmanager
    def kept(case: Case, _job: object, contender: Contender, *_: object, **__: object) -> Iterator[Compiled]:
        if SETTING not in contender.settings:
            yield Compiled(CompileCache(state="none"), None)
            return
        folder = tmp_path_factory.getbasetemp() / "compiled" / case.backend
        folder.mkdir(parents=True, exist_ok=True)
        yield Compiled(CompileCache(state="warm", path=str(folder)), folder)

    monkeypatch.setattr("timetrial.launch.run.compiled", kept)


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A measurement lock of the test's own: tests may run beside a real measurement."""
    path = tmp_path / "measurement.lock"
    monkeypatch.setenv("TIMETRIAL_LOCK", str(path))
    return path


@pytest.fixture
def runtime() -> Iterator[Callable[[str], ModuleType]]:
    """Imports modules of the runtime as main.py does, and forgets them again."""
    from timetrial.contenders.registry import RUNTIME_FOLDER

    sys.path.insert(0, str(RUNTIME_FOLDER))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(RUNTIME_FOLDER))
        for name in RUNTIME_MODULES:
            sys.modules.pop(name, None)
