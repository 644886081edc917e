from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import pytest

from timetrial.cases import sources
from timetrial.cases.cases import names_no_network
from timetrial.cases.spec import parse_spec
from timetrial.errors import InputError
from timetrial.experiment import experiment as module
from timetrial.experiment.describe import measured_peaks
from timetrial.experiment.experiment import Experiment
from timetrial.experiment.installed import spell_out
from timetrial.records.reference import matches
from timetrial.toml import read_toml

BLAS_LOOK = """
name = "blas-look"
seed = 1

[workload]
network = "lenet5"
dataset = "digits28"
batch_size = 64
optimizer = { name = "sgd", learning_rate = 0.02, momentum = 0.9 }

[train]
epochs = 12

[[contender]]
backend = ["pytorch", "eigen", "onednn"]

[[contender]]
backend = "cblas"
blas.library = ["openblas-pthread", "blis"]

[axes]
threads = [1, 2]

[measure]
effort = "quick"
reference = { backend = "pytorch" }
"""


@pytest.fixture
def load(networks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Experiment]:
    monkeypatch.setattr("timetrial.cases.cases.usable_cpus", lambda: 2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blas-look.toml").write_text(BLAS_LOOK, encoding="utf-8")

    def load(*words: str) -> Experiment:
        return module.load_words(list(words), load_network=networks)

    return load


def shown(experiment: Experiment, *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(planned.case.axes.get(key) for key in keys) for planned in experiment.cases]


def test_lists_span_tables_add_up_axes_span_all(load: Callable[..., Experiment]) -> None:
    experiment = load("blas-look.toml")
    assert shown(experiment, "backend", "blas.library", "threads") == [
        ("pytorch", None, 1),
        ("pytorch", None, 2),
        ("eigen", None, 1),
        ("eigen", None, 2),
        ("onednn", None, 1),
        ("onednn", None, 2),
        ("cblas", "openblas-pthread", 1),
        ("cblas", "openblas-pthread", 2),
        ("cblas", "blis", 1),
        ("cblas", "blis", 2),
    ]
    assert experiment.cases[6].case.settings == {"blas.library": "openblas-pthread", "threads": "1"}
    assert experiment.sizes.launches == 6


def test_words_alone_are_complete(load: Callable[..., Experiment]) -> None:
    experiment = load("network=mlp", "backend=eigen")
    (planned,) = experiment.cases
    assert planned.case.workload.dataset == "digits28"
    assert planned.case.workload.batch_size == 64
    assert planned.case.workload.optimizer["learning_rate"] == 0.02
    assert planned.case.settings == {}
    assert list(planned.case.axes) == [
        "backend",
        "network",
        "threads",
        "task",
        "device",
        "dtype",
        "semantics",
    ]


def test_width_and_depth_are_axes_of_networks_of_their_own(load: Callable[..., Experiment]) -> None:
    def sized(source: str) -> SimpleNamespace:
        return SimpleNamespace(**{**vars(fakes.network("mlp")), "name": source.replace("@512x2", "")})

    experiment = module.load_words(
        ["network=mlp", "backend=eigen", "width=64,512", "depth=2"], load_network=sized
    )
    cases = [planned.case for planned in experiment.cases]
    assert [case.workload.network for case in cases] == ["mlp@64x2", "mlp"]
    assert [case.axes["width"] for case in cases] == [64, 512]
    assert [case.axes["network"] for case in cases] == ["mlp@64x2", "mlp"]


def test_a_key_given_replaces_it_everywhere(load: Callable[..., Experiment]) -> None:
    assert shown(load("blas-look.toml", "threads=2"), "threads") == [(2,)] * 5
    assert shown(load("blas-look.toml", "blas.library=mkl", "threads=1"), "backend", "blas.library") == [
        ("pytorch", None),
        ("eigen", None),
        ("onednn", None),
        ("cblas", "mkl"),
    ]
    assert {planned.case.workload.batch_size for planned in load("blas-look.toml", "batch_size=8").cases} == {
        8
    }


def test_backend_keeps_the_matching_contenders(load: Callable[..., Experiment]) -> None:
    assert shown(load("blas-look.toml", "backend=cblas,eigen", "threads=1"), "backend", "blas.library") == [
        ("eigen", None),
        ("cblas", "openblas-pthread"),
        ("cblas", "blis"),
    ]
    with pytest.raises(InputError, match=r"no contender with backend 'eigne'. Did you mean 'eigen'"):
        load("blas-look.toml", "backend=eigne")


def test_a_setting_with_a_backends_name_reaches_that_backend(load: Callable[..., Experiment]) -> None:
    experiment = load("network=mlp", "null.step_us=5,9", "backend=null,eigen")
    assert shown(experiment, "backend", "null.step_us") == [("null", 5), ("null", 9), ("eigen", None)]


def test_equal_values_stay_two_cases(load: Callable[..., Experiment]) -> None:
    first, second = (planned.case for planned in load("network=mlp", "backend=eigen", "threads=1,1").cases)
    assert second.id == f"{first.id}-2"
    assert (first.axes["repeat"], second.axes["repeat"]) == (1, 2)


def test_threads_above_the_mask(load: Callable[..., Experiment]) -> None:
    with pytest.raises(InputError, match="threads 64: this process may use 2 CPUs"):
        load("network=mlp", "backend=eigen", "threads=64")
    reasons = [planned.unavailable for planned in load("network=mlp", "backend=eigen", "threads=1,64").cases]
    assert reasons == [None, "threads 64: this process may use 2 CPUs"]


def test_a_backend_without_a_network_gets_one_and_it_is_said(load: Callable[..., Experiment]) -> None:
    experiment = load("backend=eigen")
    assert [one.case.workload.network for one in experiment.cases] == ["lenet5"]
    assert names_no_network(experiment.spec)
    assert not names_no_network(load("backend=eigen", "network=mlp").spec)


@pytest.mark.parametrize(("mode", "refused"), [("eager", False), ("compiled", True), ("egaer", True)])
def test_a_reference_may_name_the_mode_that_is_the_default(
    load: Callable[..., Experiment], mode: str, refused: bool
) -> None:
    words = ("network=mlp", "backend=pytorch,eigen", f'reference={{backend = "pytorch", mode = "{mode}"}}')
    if refused:
        with pytest.raises(InputError, match="is no case of this experiment"):
            load(*words)
    else:
        assert load(*words).spec.measure.reference == {"backend": "pytorch"}
    asked = load(*words, "mode=eager,compiled") if mode != "egaer" else None
    assert asked is None or asked.spec.measure.reference == {"backend": "pytorch", "mode": mode}


@pytest.mark.parametrize("modes", [(), ("mode=eager,compiled",)])
def test_networks_has_one_yardstick_whether_modes_are_asked_for_or_not(
    load: Callable[..., Experiment], modes: tuple[str, ...]
) -> None:
    experiment = load("networks", "network=lenet5", "backend=pytorch,eigen", *modes)
    fixed = experiment.spec.measure.reference or {}
    yardsticks = [planned.case for planned in experiment.cases if matches(planned.case.facts(), fixed)]
    assert [(one.backend, one.settings.get("mode", "eager")) for one in yardsticks] == [("pytorch", "eager")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Nothing to run"),
        (("blas-lok",), "There is no experiment 'blas-lok'"),
        (("missing.toml",), "no experiment file 'missing.toml'"),
        (("network=mlp",), "contender without a backend"),
        (("network=mpl", "backend=eigen"), "no network 'mpl'"),
        (("network=mlp", "backend=eigen", "thread=2"), "no key 'thread'. Did you mean 'threads'"),
        (("network=mlp", "backend=eigen", "threads=0"), "threads is 0; expected a whole number from 1 to 2"),
        (("network=mlp", "backend=eigen", "threads=two"), "threads is 'two'"),
        (("network=mlp", "backend=eigen", "batch_size=0"), "batch_size is 0"),
        (("network=mlp", "backend=eigen", "batch_size=1.5"), "batch_size is 1.5"),
        (("network=mlp", "backend=eigen", "width=wide"), "width is 'wide'; expected a whole number of units"),
        (("network=mlp", "backend=eigen", "depth=0"), "depth is 0; expected a whole number of layers"),
        (("network=mlp", "backend=eigen", "task=tarin"), "no task 'tarin'. Did you mean 'train'"),
        (("network=mlp", "backend=eigen", "effort=fast"), "'measure.effort' is 'fast'"),
        (("network=mlp", "backend=eigen", "effort=quik"), "Did you mean 'quick'"),
        (("network=mlp", "backend=eigen", "epochs=0"), "'train.epochs' is 0"),
        (("network=mlp", "backend=eigen", "seed=-1"), "'seed' is -1"),
        (("network=mlp", "backend=eigen", "seed=1,2"), "'seed' takes one value"),
        (("network=mlp", "backend=eigen", "optimizer.rate=1"), "optimizer has no 'rate'"),
        (("network=mlp", "backend=eigen", "reference=pytorch"), "is no case of this experiment"),
    ],
)
def test_bad_words(load: Callable[..., Experiment], words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(*words)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[train]", "[trian]"), r"there is no key 'trian'. Did you mean 'train'"),
        (("epochs = 12", "epoch = 12"), r"\[train\]: there is no key 'epoch'. Did you mean 'epochs'"),
        (("epochs = 12", 'epochs = "12"'), "'train.epochs' is '12'"),
        (("batch_size = 64", "batchsize = 64"), r"\[workload\]: a workload has no 'batchsize'"),
        (("batch_size = 64", "threads = 1"), r"It belongs into \[axes\]"),
        (("batch_size = 64", "batch_size = [32, 64]"), r"What varies belongs into \[axes\]"),
        (('effort = "quick"', 'effort = "quik"'), "Did you mean 'quick'"),
        (("threads = [1, 2]", "threads = []"), "'threads' has no values"),
        (("threads = [1, 2]", 'backend = ["null"]'), "'backend' is both in"),
        (("threads = [1, 2]", "thread = [1, 2]"), r"\[axes\]: there is no key 'thread'"),
        (("seed = 1", "seed = "), "is not TOML"),
    ],
)
def test_bad_files(
    load: Callable[..., Experiment], tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "bad.toml").write_text(BLAS_LOOK.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load("bad.toml")
    assert "bad.toml" in str(caught.value)


def test_again_runs_the_same(load: Callable[..., Experiment]) -> None:
    experiment = load(
        "blas-look.toml", "threads=1,2", "backend=eigen", 'optimizer={name = "sgd", learning_rate = 0.1}'
    )
    program, verb, *words = shlex.split(experiment.again_with("run"))
    assert (program, verb) == ("timetrial", "run")
    assert [planned.case.id for planned in load(*words).cases] == [
        planned.case.id for planned in experiment.cases
    ]


def test_values_not_supported_yet_are_rows(load: Callable[..., Experiment]) -> None:
    (planned,) = load("network=mlp", "backend=eigen", "device=cuda").cases
    assert str(planned.unavailable).startswith("device 'cuda' is not supported yet (only 'cpu').")


def test_a_reference_ruled_out_by_words_is_forgotten(load: Callable[..., Experiment]) -> None:
    assert load("blas-look.toml", "backend=eigen").spec.measure.reference is None


def test_shipped_experiments_are_valid() -> None:
    assert "first-look" in sources.shipped()
    for path in sources.shipped().values():
        spec = parse_spec({"name": path.stem, **read_toml(path, "The experiment")}, str(path))
        spec = spell_out(spec, lambda: {"pytorch@2.13.0": ("eager", "compiled")})
        assert module.build(spec, again=None, cpus=64).cases


@pytest.mark.parametrize(
    ("measured", "peaks"),
    [
        ([10.0, 19.0], {"1": 10.0, "2": 19.0}),
        ([10.0, 10.5, 9.0, 19.5], {"1": 10.0, "2": 19.5}),  # a neighbor had the second CPU for a second
        ([10.0, 10.5, 9.0, 10.0, 10.2, 10.0], {"1": 10.2, "2": 10.5}),  # the CPUs share a core
    ],
)
def test_a_peak_that_others_took_is_measured_again(measured: list[float], peaks: dict[str, float]) -> None:
    left = iter(measured)
    assert measured_peaks([2, 1], lambda threads: next(left)) == peaks
    assert next(left, None) is None
