"""Who judges: `reference` while it takes seconds, above that `cblas` in f64, which is tried first."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import make_plan, small_network, words

from timetrial.core import Network
from timetrial.launch import LaunchPlan, judge, run_launch
from timetrial.launch.judge import LARGE, SMALL, Judge, choose_judge, trial_problem
from timetrial.libraries import known as known_module
from timetrial.records.model import Comparison, Parity
from timetrial.workloads import load_network

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted"


def network(name: str, batch_size: int, shape: tuple[int, ...]) -> Network:
    return Network(load_network(name).nodes_for(10), batch_size, shape)


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(judge, "REFERENCE_LIMIT", 0)
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))


def plan(folder: Path, backend: str = "eigen", **settings: str) -> LaunchPlan:
    return make_plan(
        folder / "proof", backend, network=small_network(folder), settings=settings, purpose="proof"
    )


@pytest.mark.parametrize(
    ("name", "batch_size", "shape", "task", "expected"),
    [
        ("mlp", 64, (1, 28, 28), "train", SMALL),
        ("lenet5", 64, (1, 28, 28), "train", SMALL),
        ("lenet5", 1024, (1, 28, 28), "train", LARGE),
        ("dlbench-cifar", 128, (3, 32, 32), "train", LARGE),
        ("dlbench-cifar", 128, (3, 32, 32), "gradient", LARGE),
        ("dlbench-cifar", 128, (3, 32, 32), "forward", SMALL),
    ],
)
def test_the_work_chooses(
    name: str, batch_size: int, shape: tuple[int, ...], task: str, expected: Judge
) -> None:
    assert choose_judge(network(name, batch_size, shape), task) is expected


def test_a_network_that_is_too_large_for_reference(tmp_path: Path) -> None:
    made = make_plan(
        tmp_path / "proof", "eigen", network="dlbench-cifar", dataset="synthetic-cifar", batch_size=128,
        learning_rate=0.01, purpose="proof",
    )  # fmt: skip
    record = run_launch(made)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert (record.parity.status, record.parity.judge) == ("passed", "cblas (f64)")
    assert not (tmp_path / "proof" / "judge").exists()


@pytest.mark.usefixtures("everything_is_large")
def test_the_large_judge_is_as_strict(tmp_path: Path) -> None:
    record = run_launch(plan(tmp_path, str(PLANTED), **{"planted.defect": "forgotten_momentum"}))
    assert record.outcome == "wrong", words(record)
    assert record.parity is not None
    assert (record.parity.judge, record.parity.tensor) == ("cblas (f64)", "loss of step 3")


def planted_judge(folder: Path, defect: str) -> Judge:
    """A judge of NumPy in f32, with a defect."""
    source = (PLANTED / "adapter.py").read_text()
    adapter = folder / "planted_judge"
    adapter.mkdir()
    asked = 'settings.get("planted.defect", "none")'
    assert asked in source
    (adapter / "adapter.py").write_text(source.replace(asked, repr(defect)))
    return Judge(str(adapter))


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize(
    ("defect", "said"),
    [
        ("forgotten_momentum", "differs from reference on 3 images: loss of step 3: relative error"),
        ("missing_bias", "differs from reference on 3 images: gradient conv1.bias: relative L2 error 1"),
        ("none", "tolerance 1e-09"),  # right, but in f32: good enough for a contender, not for a judge
    ],
)
def test_a_wrong_judge_does_not_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str, said: str
) -> None:
    monkeypatch.setattr(judge, "LARGE", planted_judge(tmp_path, defect))
    record = run_launch(plan(tmp_path))
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "unproven"
    assert said in (record.parity.reason or "")
    assert len(record.parity.losses) == 5


@pytest.mark.usefixtures("everything_is_large")
def test_a_judge_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_module.importlib.metadata, "files", lambda name: [])
    record = run_launch(plan(tmp_path))
    assert record.parity is not None
    assert record.parity.status == "unproven"
    assert (record.parity.reason or "").startswith(
        "the judge cblas (f64) could not run: blas.library=openblas-scipy is not installed"
    )


@pytest.mark.usefixtures("everything_is_large")
def test_the_judge_and_its_trial_are_asked_once(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        record = run_launch(plan(tmp_path / name))
        assert record.parity is not None
        assert record.parity.judge == "cblas (f64)"
    # The large judge's answer, and the trial of both.
    assert len(list((tmp_path / "cache" / "v1" / "judge").iterdir())) == 3


def comparison(tensor: str, error: float | None) -> Comparison:
    return Comparison(tensor=tensor, measure="relative_l2", error=error, tolerance=2e-5, passed=True)


@pytest.mark.parametrize(
    ("tensor", "error", "fails"),
    [
        ("gradient fc1.weight", 1e-12, False),
        ("gradient fc1.weight", 1e-8, True),
        ("output", 3e-8, False),  # handed over in f32
        ("workload: parameter fc1.weight", 1e-6, False),  # ties in real images
    ],
)
def test_doubles_agree_closely(tensor: str, error: float, fails: bool) -> None:
    parity = Parity(status="passed", comparisons=[comparison(tensor, error)])
    assert (trial_problem(parity) is not None) == fails
