"""Large networks are judged on part of a batch: the same numbers, the same defects refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import small_network, workload
from native_twin import NativeTwin
from twins import Bench

from timetrial.core import Network
from timetrial.proof import parts
from timetrial.proof.judge import SMALL, NativeJudge, judge_of
from timetrial.proof.parts import FEWEST, PartJudge, part_of, part_of_recipe, repeated, samples
from timetrial.questions.observed import Batches, rows_of
from timetrial.workloads import prepare

BATCH = 16


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(tmp_path / "cache"))


def network(tmp_path: Path, batch: int = BATCH) -> Network:
    found = prepare(workload(small_network(tmp_path), batch_size=batch), seed=1, epochs=1).network
    assert found is not None
    return found


def limit_to(images: int, of: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if so many images were all that a judge can do."""
    monkeypatch.setattr(parts, "PART_LIMIT", images * of.multiply_accumulates("gradient") // of.batch_size)


@pytest.mark.parametrize(
    ("batch", "able", "part"),
    [(16, 16, 16), (16, 100, 16), (16, 9, 8), (16, 1, FEWEST), (15, 9, 5), (7, 2, 7)],
)
def test_the_part_divides_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, able: int, part: int
) -> None:
    of = network(tmp_path, batch)
    limit_to(able, of, monkeypatch)
    assert part_of(of) == part


@pytest.mark.parametrize(("able", "part"), [(16, 16), (9, 8), (5, 4), (3, 16), (0, 16)])
def test_the_recipe_has_as_many_as_reference_judges(tmp_path: Path, able: int, part: int) -> None:
    """Or, where these are too few for any part, as many as everything else."""
    assert part_of_recipe(network(tmp_path), able) == part


def test_each_image_comes_equally_often_in_an_order_of_chance() -> None:
    order = np.arange(64).reshape(4, 16)
    found = repeated(order, 4)
    for row, before in zip(found, order, strict=True):
        assert sorted(row) == sorted(np.tile(before[:4], 4))
        for end in (4, 8, 12):
            assert len(set(np.bincount(row[:end] - before[0], minlength=4))) > 1
    assert repeated(order, 16) is order


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_judge_of_parts_says_what_a_judge_of_all_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_repeated: bool
) -> None:
    prepared = prepare(workload(small_network(tmp_path), batch_size=BATCH), seed=1, epochs=1)
    assert prepared.network is not None
    whole = NativeJudge(SMALL, prepared.network)
    limit_to(4, prepared.network, monkeypatch)
    judge = judge_of(prepared)
    assert isinstance(judge, PartJudge)
    batch = Batches(prepared.job["streams"]).batch("train", 0)
    if is_repeated:
        batch = rows_of(batch, repeated(np.arange(BATCH)[None], 4)[0])
    parameters: dict[str, Any] = {
        one["name"]: np.load(one["file"])
        for node in prepared.job["network"]["nodes"]
        for one in node["parameters"]
    }
    theirs = whole.gradient(parameters, batch, {})
    # A judge of all is shown all, one of parts what it computes.
    places = samples(batch, 4) if is_repeated else np.arange(BATCH)
    shown = {name: values * 1.01 for name, values in theirs.activation.items()}
    theirs = whole.gradient(parameters, batch, shown)
    mine = judge.gradient(parameters, batch, rows_of(shown, places))
    assert mine.loss == pytest.approx(theirs.loss, rel=1e-12)
    for kind in ("gradient", "activation"):
        ours, others = getattr(mine, kind), getattr(theirs, kind)
        assert ours.keys() == others.keys()
        for name, values in others.items():
            some = values[places] if kind == "activation" else values
            np.testing.assert_allclose(ours[name], some, rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(judge.output(parameters, batch), whole.output(parameters, batch), rtol=1e-12)


def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    limit_to(4, network(tmp_path), monkeypatch)
    found = Bench.of(small_network(tmp_path), "synthetic", batch_size=BATCH, weight_decay=5e-4)
    images = Batches(found.prepared.job["streams"]).batch("proof", 0)["images"]
    assert len(np.unique(images.reshape(BATCH, -1), axis=0)) == 4
    return found


@pytest.mark.parametrize("defect", ["half_batch", "ignored_bias:conv2", "stale_weight:fc2", "ignored_decay"])
def test_what_is_wrong_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    found = bench(tmp_path, monkeypatch)
    for parity in (found.proof(defect), found.end(defect, steps=10)):
        assert parity.status == "failed", parity


def test_what_is_right_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bench(tmp_path, monkeypatch)

    def eigen(prepared: Any) -> NativeTwin:
        return NativeTwin(prepared, "train", "eigen")

    proofs = (found.proof(), found.proof_of(eigen))
    ends = (found.end(steps=10), found.end_of(eigen, steps=10))
    for parity in (*proofs, *ends):
        assert (parity.status, parity.turned) == ("passed", []), parity
