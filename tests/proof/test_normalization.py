"""Normalization through the gate: an honest contender passes, each defect is refused by the name of a tensor,
and what rounding turns in a batch of images that depend on each other is found in all of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from native_twin import NativeTwin
from own_networks import NORMALIZED
from twins import Bench

from timetrial.core import Network
from timetrial.proof import parts
from timetrial.proof.judge import SMALL, NativeJudge, judge_of
from timetrial.proof.parts import PartJudge, different, part_of
from timetrial.questions.observed import Batches, Tensors, rows_of
from timetrial.records.model import Parity


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("normalized")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(cache / "cache"))


def bench(cache: Path, text: str = NORMALIZED) -> Bench:
    path = cache / f"normalized{len(text)}.toml"
    path.write_text(text)
    return Bench.of(str(path), "synthetic", batch_size=8, learning_rate=0.05, weight_decay=5e-4)


def seen(parity: Parity) -> str:
    return f"{parity.status}: {parity.reason} {parity.turned}"


def test_a_right_one_passes(cache: Path) -> None:
    parity = bench(cache).proof()
    assert parity.status == "passed", seen(parity)
    assert any("state norm1.running_var" in one.tensor for one in parity.comparisons)


@pytest.mark.parametrize("backend", ["eigen", "onednn"])
def test_real_backends_pass(cache: Path, backend: str) -> None:
    parity = bench(cache).proof_of(lambda prepared: NativeTwin(prepared, "train", backend))
    assert parity.status == "passed", seen(parity)


def residual(blocks: int) -> str:
    """A file of as many blocks of two normalized convolutions around a sum."""

    def convolution(name: str, source: str) -> str:
        shape = "{ channels = 8, kernel = 3, padding = 'same', bias = false }"
        return (
            f'[[nodes]]\nname = "{name}"\nkind = "conv2d"\ninputs = ["{source}"]\nattributes = {shape}\n'
            f'[[nodes]]\nname = "{name}_norm"\nkind = "batch_norm"\n'
        )

    def relu(name: str) -> str:
        return f'[[nodes]]\nname = "{name}"\nkind = "relu"\n'

    text = convolution("first", "images") + relu("out0")
    for one in range(1, blocks + 1):
        text += (
            convolution(f"a{one}", f"out{one - 1}") + relu(f"in{one}") + convolution(f"b{one}", f"in{one}")
        )
        text += f'[[nodes]]\nname = "sum{one}"\nkind = "add"\ninputs = ["b{one}_norm", "out{one - 1}"]\n'
        text += relu(f"out{one}")
    return text + NORMALIZED_HEAD


NORMALIZED_HEAD = """
[[nodes]]
name = "mean"
kind = "global_avg_pool2d"

[[nodes]]
name = "classes"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["classes", "labels"]
"""


@pytest.mark.parametrize("backend", ["eigen", "onednn"])
def test_biases_in_front_of_normalized_features_are_no_error(cache: Path, backend: str) -> None:
    """Their gradients are 0 but for rounding, beside momentum and decay."""
    pytest.importorskip("sklearn")
    text = '[[nodes]]\nname = "flat"\nkind = "flatten"\n'
    for one in range(1, 3):
        text += f'[[nodes]]\nname = "fc{one}"\nkind = "dense"\nattributes = {{ units = 16 }}\n'
        text += f'[[nodes]]\nname = "norm{one}"\nkind = "batch_norm"\n'
        text += f'[[nodes]]\nname = "relu{one}"\nkind = "relu"\n'
    path = cache / "features.toml"
    path.write_text(text + NORMALIZED_HEAD.partition("\n\n")[2])
    of = Bench.of(str(path), "digits28", batch_size=8, learning_rate=0.05, weight_decay=1e-4)
    parity = of.proof_of(lambda prepared: NativeTwin(prepared, "train", backend))
    assert parity.status == "passed", seen(parity)


@pytest.mark.full
@pytest.mark.parametrize("backend", ["eigen", "onednn"])
def test_blocks_around_a_sum_keep_the_rounding_of_what_cancels(cache: Path, backend: str) -> None:
    """Behind a mean over the image a normalization takes most of the gradient away: what is left of the last
    block is off by up to 1e-4, in honest hands."""
    of = bench(cache, residual(4))
    parity = of.proof_of(lambda prepared: NativeTwin(prepared, "train", backend))
    assert parity.status == "passed", seen(parity)


# What goes into the second has been normalized: its mean is 0, and what is kept of it nothing but rounding.
AGAIN = NORMALIZED.replace(
    'name = "relu1"', 'name = "again"\nkind = "batch_norm"\n\n[[nodes]]\nname = "relu1"', 1
)


@pytest.mark.parametrize(("defect", "passes"), [("none", True), ("mean_off", False)])
def test_a_mean_of_values_that_cancel_keeps_their_rounding_and_no_more(
    cache: Path, defect: str, passes: bool
) -> None:
    parity = bench(cache, AGAIN).proof(defect)
    (found,) = (one for one in parity.comparisons if one.tensor == "step 1: state again.running_mean")
    assert found.passed == passes, found
    assert found.error is not None
    assert found.error > 0  # it is not that nothing was off
    assert (parity.status == "passed") == passes, seen(parity)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("norm_gradient", "gradient fc1.weight"),
        ("mean_without_gradient", "gradient fc1.weight"),
        ("variance_without_gradient", "gradient fc1.weight"),
        ("gradient_off:norm1.weight", "gradient norm1.weight"),
        ("gradient_off:conv1.weight", "gradient conv1.weight"),
        ("other_epsilon", "activation norm1"),
        ("unbiased_variance", "activation norm"),
        ("statistics_of_half", "activation norm1"),
        ("statistics_of_before", "step 2: activation norm1"),
        ("norm_bias_ignored", "step 2: activation norm1"),
        ("stale_norm_weight", "step 2: velocity fc1.weight"),
        ("frozen:norm2.weight", "step 1: velocity norm2.weight"),
        ("frozen:norm2.bias", "step 1: velocity norm2.bias"),
        ("undecayed_bias", "step 1: velocity norm"),
        ("running_twice", "step 1: state norm1.running_mean"),
        ("momentum_off", "step 1: state norm1.running_mean"),
        ("running_of_before", "evaluation: output"),
        ("stale_unseen", "plain step 2: loss"),
        ("bf16_unseen", "plain step 2: loss"),
        ("unbiased_running", "step 1: state norm"),
        ("running_unmoved", "step 1: state norm1.running_mean"),
        ("batch_in_inference", "first evaluation: output"),
        ("moved_in_inference", "first evaluation"),
        ("momentum_of_the_old", "step 1: state norm1.running_mean"),
        ("lrn_whole_alpha", "activation lrn"),
        ("slope_ignored", "activation relu2"),
    ],
)
def test_a_defect_is_refused_by_name(cache: Path, defect: str, tensor: str) -> None:
    parity = bench(cache).proof(defect)
    assert parity.status == "failed", seen(parity)
    assert tensor in (parity.tensor or ""), seen(parity)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("skipped_later", "step 61: velocity"),
        ("bf16_later", "step 61: "),
        ("frozen_later:norm1", "step 61: velocity norm1"),
        ("running_unmoved_later", "step 61: state norm1"),
    ],
)
def test_what_begins_while_it_is_timed_is_refused_behind_it(cache: Path, defect: str, tensor: str) -> None:
    parity = bench(cache).end(defect)
    assert parity.status == "failed", seen(parity)
    assert (parity.tensor or "").startswith(tensor), seen(parity)


@pytest.mark.attempt
def test_an_open_relu6_is_refused(cache: Path) -> None:
    """Behind a normalization hardly a value is above 6: so behind a sum of many instead."""
    many = ", ".join(['"conv1"'] * 24)
    wide = NORMALIZED.replace('kind = "batch_norm"', f'kind = "add"\ninputs = [{many}]', 1)
    parity = bench(cache, wide).proof("relu6_open")
    assert parity.status == "failed", seen(parity)
    assert "activation relu1" in (parity.tensor or ""), seen(parity)


def network_of(of: Bench) -> tuple[Network, Tensors, Tensors, Tensors]:
    """With its parameters, its states, and a batch in which each of four images comes equally often."""
    nodes = of.prepared.job["network"]["nodes"]
    values = {
        role: {
            p["name"]: np.load(p["file"]) for node in nodes for p in node["parameters"] if p["role"] == role
        }
        for role in ("parameter", "state")
    }
    batch = Batches(of.prepared.job["streams"]).batch("proof", 0)
    first = different(batch)[0][:4]
    assert of.prepared.network is not None
    return of.prepared.network, values["parameter"], values["state"], rows_of(batch, np.tile(first, 2))


def test_means_stay_where_each_image_comes_equally_often(cache: Path) -> None:
    network, parameters, states, batch = network_of(bench(cache))
    at = {**parameters, **states}
    whole = NativeJudge(SMALL, network).gradient(at, batch)
    few = NativeJudge(SMALL, network.resized(4)).gradient(at, rows_of(batch, slice(4)))
    assert whole.loss == pytest.approx(few.loss, rel=1e-12)
    for mine, theirs in ((whole.gradient, few.gradient), (whole.state, few.state)):
        for name, values in mine.items():
            np.testing.assert_allclose(values, theirs[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_any_other_batch_is_judged_whole(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = bench(cache)
    network, parameters, states, batch = network_of(of)
    work = network.multiply_accumulates("gradient")
    monkeypatch.setattr(parts, "COUPLED_LIMIT", work // 2)
    assert part_of(network) == 4
    judge = judge_of(of.prepared)
    assert isinstance(judge, PartJudge)
    uneven = rows_of(batch, [0, 0, 0, 1, 1, 2, 3, 3])
    at = {**parameters, **states}
    expected = NativeJudge(SMALL, network).gradient(at, uneven)
    for name, values in judge.gradient(at, uneven).gradient.items():
        np.testing.assert_allclose(values, expected.gradient[name], rtol=1e-6, atol=1e-9, err_msg=name)
