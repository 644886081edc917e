"""The gate against twins in NumPy: what it must refuse, by tensor and step, and what it must not."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import small_network
from twins import CIFAR_NETWORK, Bench

from timetrial.records.model import Parity

RATES = (0.05, 0.005, 0.001)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(cache / "cache"))


def bench(
    cache: Path, network: str = "small", *, rate: float = 0.05, task: str = "train", seed: int = 1
) -> Bench:
    names = {
        "small": (small_network(cache), "synthetic"),
        "mlp": ("mlp", "digits28"),
        "lenet5": ("lenet5", "digits28"),
    }
    if network == "cifar":
        path = cache / "cifar.toml"
        path.write_text(CIFAR_NETWORK)
        names["cifar"] = (str(path), "synthetic-cifar")
    name, dataset = names[network]
    return Bench.of(name, dataset, task, seed, batch_size=8, learning_rate=rate, weight_decay=5e-4)


LAYERS = {
    "small": ("conv1", "conv2", "fc1", "square", "fc2"),
    "cifar": ("conv1", "conv2", "fc1", "fc2"),
    "mlp": ("fc1", "fc2", "fc3"),
    "lenet5": ("conv1", "conv2", "fc1", "fc2"),
}
OF_LAYERS = ("ignored_bias", "stale_weight", "initial_weight", "frozen")
PLAIN = (
    "ignored_decay", "doubled_rate", "nesterov", "dampened", "decayed_late", "forgotten_momentum",
    "no_update", "evaluation_mode", "forgotten_mean", "reduced_precision", "stale_batch", "cached_loss",
    "ahead", "stale_evaluation", "no_reset", "half_batch", "every_eighth", "velocity_lost", "first_inference",
    "inference_trace", "stale_unseen", "bf16_unseen", "late_loss_unseen",
)  # fmt: skip
OF_CONVOLUTIONS = ("zero_gradient_through_pool", "missing_bias")


def defects(network: str) -> list[str]:
    """Everything that can be planted in a network. The first layer passes no gradient back."""
    layers = LAYERS[network]
    found = [
        f"{kind}:{layer}"
        for kind in OF_LAYERS
        for layer in layers
        if kind in ("ignored_bias", "frozen") or layer != layers[0]
    ]
    return [*found, *PLAIN, *(OF_CONVOLUTIONS if layers[0] == "conv1" else ())]


def seen(parity: Parity) -> str:
    return f"{parity.status}: {parity.reason} {parity.turned}"


@pytest.mark.parametrize("defect", defects("small"))
def test_a_defect_is_refused_at_the_smallest_rate(cache: Path, defect: str) -> None:
    parity = bench(cache, rate=0.001).proof(defect)
    assert parity.status == "failed", seen(parity)
    assert parity.turned == []
    assert parity.tensor is not None
    assert parity.tensor in (parity.reason or "")


def test_what_an_evaluation_leaves_in_states_that_nobody_sees_shows_in_the_next_step(cache: Path) -> None:
    parity = bench(cache, rate=0.005).proof("inference_trace", states="hidden")
    assert parity.status == "failed", seen(parity)


@pytest.mark.full
@pytest.mark.parametrize("states", ["shown", "hidden"])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("network", ["small", "mlp", "cifar", "lenet5"])
def test_every_defect_is_refused_at_every_rate(cache: Path, network: str, rate: float, states: str) -> None:
    prepared = bench(cache, network, rate=rate)
    found = {defect: prepared.proof(defect, states=states) for defect in defects(network)}
    assert {defect: seen(one) for defect, one in found.items() if one.status != "failed"} == {}
    unnamed = [
        defect for defect, one in found.items() if one.tensor is None or one.tensor not in (one.reason or "")
    ]
    assert unnamed == []


@pytest.mark.parametrize("states", ["shown", "hidden"])
@pytest.mark.parametrize(
    "defect", ["none", "other_order", "relu_at_zero", "gradient_leaves_a_trace", "chance"]
)
def test_what_is_right_is_not_refused(cache: Path, defect: str, states: str) -> None:
    for rate in RATES:
        prepared = bench(cache, rate=rate)
        for parity in (prepared.proof(defect, states=states), prepared.end(defect, states=states)):
            assert parity.status == "passed", seen(parity)


@pytest.mark.parametrize(
    ("defect", "tensor"),
    [
        ("none", None),
        ("skipped_later", "step 61: velocity"),
        ("bf16_later", "step 61: activation conv1"),
        ("frozen:conv2", "step 61: velocity conv2."),
        ("stale_weight:fc2", "step 61: velocity square."),
        ("cached_loss", "step 61: loss"),
        ("ahead", "step 61: loss"),
    ],
)
def test_the_step_behind_the_timed_part_is_judged(cache: Path, defect: str, tensor: str | None) -> None:
    parity = bench(cache).end(defect)
    if tensor is None:
        assert parity.status == "passed", seen(parity)
    else:
        assert parity.status == "failed", seen(parity)
        assert (parity.tensor or "").startswith(tensor), seen(parity)


@pytest.mark.parametrize("task", ["gradient", "forward"])
def test_the_other_tasks(cache: Path, task: str) -> None:
    prepared = bench(cache, task=task)
    for parity in (prepared.proof(), prepared.end()):
        assert parity.status == "passed", seen(parity)
    for defect in ("ignored_bias:fc1", "stale_batch", "reduced_precision"):
        parity = prepared.proof(defect)
        assert parity.status == "failed", seen(parity)


def test_a_constant_is_no_forward_pass(cache: Path) -> None:
    prepared = bench(cache, task="forward")
    for parity in (prepared.proof("constant"), prepared.end("constant")):
        assert parity.status == "failed", seen(parity)
        assert "timed step on proof" in (parity.tensor or ""), seen(parity)


def test_precision_that_falls_after_fifty_forward_passes(cache: Path) -> None:
    prepared = bench(cache, task="forward")
    assert prepared.end("bf16_later", steps=20).status == "passed"
    parity = prepared.end("bf16_later", steps=60)
    assert parity.tensor == "after 60 steps, timed step on proof: output", seen(parity)


def test_what_shows_only_with_biases_is_named(cache: Path) -> None:
    """At the workload's own beginning every bias is 0; once one has moved, and under the proof's own recipe,
    the layer shows itself."""
    parity = bench(cache).proof("ignored_bias:fc1")
    assert parity.tensor == "step 2: activation fc1", seen(parity)
    assert any(one.tensor == "stress: activation fc1" and not one.passed for one in parity.comparisons)
