"""Who judges: `reference` while a step takes it a blink, above that `cblas` in f64, which is tried first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import make_plan, small_network, words

from timetrial.core import Network, images_and_labels
from timetrial.launch import LaunchPlan, run_launch
from timetrial.library_files import known as known_module
from timetrial.proof import judge
from timetrial.proof.judge import LARGE, SMALL, Answer, JudgingBackend, NativeJudge, choose_judge
from timetrial.workloads import load_network

PLANTED = Path(__file__).parents[1] / "frameworks" / "planted"


def network(name: str, batch_size: int, shape: tuple[int, ...]) -> Network:
    return Network(load_network(name).nodes_for(10), batch_size, images_and_labels(shape))


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(judge, "REFERENCE_LIMIT", 0)
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))
    judge._made.cache_clear()
    judge._try_judge.cache_clear()
    yield
    judge._made.cache_clear()
    judge._try_judge.cache_clear()


def plan(folder: Path, backend: str = "eigen", **settings: str) -> LaunchPlan:
    return make_plan(
        folder / "proof", backend, network=small_network(folder), settings=settings, purpose="proof"
    )


@pytest.mark.parametrize(
    ("name", "batch_size", "shape", "expected"),
    [
        ("mlp", 16, (1, 28, 28), SMALL),
        ("lenet5", 4, (1, 28, 28), SMALL),
        ("lenet5", 64, (1, 28, 28), LARGE),
        ("dlbench-cifar", 128, (3, 32, 32), LARGE),
    ],
)
def test_the_work_chooses(
    name: str, batch_size: int, shape: tuple[int, ...], expected: JudgingBackend
) -> None:
    assert choose_judge(network(name, batch_size, shape)) is expected


def test_both_judges_agree_and_the_small_one_is_right() -> None:
    """Against differences of the loss, which share no backward pass."""
    net = network("lenet5", 3, (1, 28, 28))
    rng = np.random.default_rng(2)
    parameters = {one["name"]: rng.normal(0, 0.1, one["shape"]) for one in net.parameters}
    images = rng.uniform(0, 1, (3, 1, 28, 28)).astype(np.float32)
    batch = {"images": images, "labels": np.array([1, 5, 9])}
    small, large = NativeJudge(SMALL, net), NativeJudge(LARGE, net, threads=1)
    mine, theirs = (one.gradient(parameters, batch) for one in (large, small))
    for name, values in theirs.gradient.items():
        assert np.linalg.norm(mine.gradient[name] - values) <= 1e-9 * np.linalg.norm(values)
    for name in ("conv1.weight", "conv2.bias", "fc1.weight", "fc2.bias"):
        way = rng.normal(0, 1, parameters[name].shape)
        ends = [
            small.gradient({**parameters, name: parameters[name] + sign * 1e-6 * way}, batch).loss
            for sign in (1, -1)
        ]
        slope = (ends[0] - ends[1]) / 2e-6
        assert slope == pytest.approx(float(np.sum(theirs.gradient[name] * way)), rel=1e-4)


@pytest.mark.parametrize("which", [SMALL, LARGE], ids=lambda one: one.name)
def test_weights_that_are_kept_are_those_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, which: JudgingBackend
) -> None:
    net = network("mlp", 2, (1, 4, 4))
    rng = np.random.default_rng(2)

    def drawn() -> dict[str, Any]:
        found = {one["name"]: rng.normal(0, 0.1, one["shape"]) for one in net.parameters}
        for values in found.values():
            values.flags.writeable = False
        return found

    asked, written = NativeJudge(which, net, threads=None if which is SMALL else 1), []
    write = asked._backend.write_tensors

    def counted(tensors: Any, role: str = "parameter") -> None:
        written.append(len(tensors) if role == "parameter" else 0)
        write(tensors, role=role)

    monkeypatch.setattr(asked._backend, "write_tensors", counted)
    batch = {"images": rng.uniform(0, 1, (2, 1, 4, 4)).astype(np.float32), "labels": np.array([1, 5])}
    one, other = drawn(), drawn()
    losses = [asked.gradient(at, batch).loss for at in (one, one, other, one)]
    assert sum(map(bool, written)) == 3, "not once more for the same"
    assert losses[0] == losses[1] == losses[3] != losses[2]
    own = {name: values.copy() for name, values in one.items()}
    assert asked.gradient(own, batch).loss == losses[0]
    for name, values in own.items():
        values[:] = other[name]
    assert asked.gradient(own, batch).loss == losses[2], "what may change is never taken for known"


def test_launches_that_begin_together_share_a_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that each of them made would hold its memory once more, and be tried once more."""
    prepared = plan(tmp_path).prepared
    make, made = NativeJudge.__init__, []

    def slowly(self: NativeJudge, *words: Any, **more: Any) -> None:
        made.append(self)
        time.sleep(0.2)
        make(self, *words, **more)

    monkeypatch.setattr(NativeJudge, "__init__", slowly)
    judge.forget_judges()
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(judge.judge_of, [prepared] * 3))
    assert len(made) == 1
    assert all(one is found[0] for one in found)


def test_whoever_asks_a_shared_judge_keeps_others_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))  # the proof's batches are chosen anew
    answer, asked = NativeJudge.gradient, []

    def alone(self: NativeJudge, *words: Any, **more: Any) -> Any:
        asked.append(judge._ASKING.locked())
        return answer(self, *words, **more)

    monkeypatch.setattr(NativeJudge, "gradient", alone)
    record = run_launch(plan(tmp_path))
    assert record.outcome == "ok", words(record)
    assert asked
    assert all(asked)


def test_where_the_large_one_judges_the_small_one_judges_the_proofs_own_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nothing is proven by code alone that a contender shares."""
    made = plan(tmp_path)
    assert made.prepared.network is not None
    work = made.prepared.network.multiply_accumulates("gradient")
    monkeypatch.setattr(judge, "REFERENCE_LIMIT", work - 1)
    record = run_launch(made)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.judge == "cblas (f64) and reference"


@pytest.mark.usefixtures("everything_is_large")
def test_the_large_judge_is_as_strict(tmp_path: Path) -> None:
    record = run_launch(plan(tmp_path, str(PLANTED), **{"planted.defect": "forgotten_momentum"}))
    assert record.outcome == "wrong", words(record)
    assert record.parity is not None
    assert record.parity.judge == "cblas (f64)"
    assert record.parity.tensor == "step 2: velocity fc2.bias"


@pytest.mark.usefixtures("everything_is_large")
def test_a_judge_in_single_precision_does_not_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right, and good enough for a contender."""
    monkeypatch.setattr(judge, "LARGE", JudgingBackend("cblas"))
    record = run_launch(plan(tmp_path))
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "unproven"
    assert "the judge cblas differs from reference on 3 images: " in (record.parity.reason or "")
    assert "tolerance 1e-09" in (record.parity.reason or "")
    assert len(record.parity.losses) == 5


@pytest.mark.usefixtures("everything_is_large")
def test_a_wrong_judge_does_not_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = NativeJudge.gradient

    def wrong(self: NativeJudge, *words: Any) -> Answer:
        answer = asked(self, *words)
        if self.name == LARGE.name:
            answer.gradient["conv1.bias"] *= 1 + 1e-7
        return answer

    monkeypatch.setattr(NativeJudge, "gradient", wrong)
    record = run_launch(plan(tmp_path))
    assert record.parity is not None
    assert record.parity.status == "unproven"
    assert "gradient conv1.bias: relative error 1e-07" in (record.parity.reason or "")


@pytest.mark.usefixtures("everything_is_large")
def test_a_judge_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_module.importlib.metadata, "files", lambda name: [])
    record = run_launch(plan(tmp_path))
    assert record.parity is not None
    assert record.parity.status == "unproven"
    assert (record.parity.reason or "").startswith(
        "the judge cblas (f64) could not run: blas.library=openblas-scipy is not installed"
    )
    timed = run_launch(make_plan(tmp_path / "timed", "eigen", network=small_network(tmp_path)))
    assert (timed.outcome, timed.end) == ("ok", None)
