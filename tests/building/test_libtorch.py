"""libtorch against reference: bit for bit on small integers, within rounding on real numbers, with one thread
and two; its settings, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradients import gradient
from launching import make_plan, small_network, words
from numpy.typing import NDArray

from timetrial import building
from timetrial.core import Backend, Network, images_and_labels, native
from timetrial.errors import InputError, TimetrialError, Unavailable
from timetrial.launch import run_launch

REFERENCE = native.native_dir() / "backends" / "reference.so"
SGD = {"name": "sgd", "learning_rate": 0.0625, "momentum": 0.5, "weight_decay": 0.25}
FORMATS = pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
THREADS = pytest.mark.parametrize("threads", ["1", "2"])
Weights = dict[str, NDArray[np.float32]]


def layer(name: str, kind: str, *inputs: str, **attributes: Any) -> dict[str, Any]:
    node = {"name": name, "kind": kind, "attributes": attributes}
    return {**node, "inputs": list(inputs)} if inputs else node


def behind_a_convolution(kind: str, **attributes: Any) -> list[dict[str, Any]]:
    """A squared error's gradient is exact where N x F is a power of two."""
    return [
        layer("first", "conv2d", channels=2, kernel=1),
        layer("middle", kind, **attributes),
        layer("flat", "flatten"),
        layer("loss", "squared_error", "flat", "labels"),
    ]


EXACT = {
    "dense": (
        [
            layer("first", "dense", units=9),
            layer("second", "dense", units=8, bias=False),
            layer("loss", "squared_error", "second", "labels"),
        ],
        (7,),
    ),
    "conv2d": (behind_a_convolution("conv2d", channels=4, kernel=[3, 2]), (3, 6, 5)),
    "strides and paddings": (
        behind_a_convolution("conv2d", channels=4, kernel=3, stride=[2, 3], padding=[1, 2]),
        (2, 7, 8),
    ),
    "same": (behind_a_convolution("conv2d", channels=4, kernel=3, padding="same", bias=False), (2, 8, 4)),
    "same at one side": (
        behind_a_convolution("conv2d", channels=4, kernel=[2, 3], padding="same"),
        (2, 4, 8),
    ),
    "same with a stride": (
        behind_a_convolution("conv2d", channels=4, kernel=3, stride=2, padding="same"),
        (2, 8, 7),
    ),
    "groups": (behind_a_convolution("conv2d", channels=8, kernel=3, groups=2, dilation=[1, 2]), (2, 6, 8)),
    "depthwise": (
        behind_a_convolution("conv2d", channels=4, kernel=3, groups=2, stride=[2, 1], padding="same"),
        (2, 4, 4),
    ),
    "stride beyond the kernel": (behind_a_convolution("conv2d", channels=4, kernel=2, stride=3), (2, 11, 11)),
    "conv_transpose2d": (behind_a_convolution("conv_transpose2d", channels=4, kernel=3), (2, 6, 2)),
    "conv_transpose2d with all": (
        behind_a_convolution(
            "conv_transpose2d",
            channels=1,
            kernel=[3, 2],
            stride=[2, 3],
            padding=[1, 0],
            output_padding=[1, 2],
            bias=False,
        ),
        (2, 4, 1),
    ),
    "upsample2d": (behind_a_convolution("upsample2d", scale=[2, 4]), (2, 4, 2)),
    "max_pool2d": (behind_a_convolution("max_pool2d", kernel=2), (2, 9, 9)),
    "max_pool2d overlapping": (
        behind_a_convolution("max_pool2d", kernel=3, stride=2, padding=1),
        (2, 8, 8),
    ),
    "avg_pool2d": (behind_a_convolution("avg_pool2d", kernel=[2, 4], stride=2, padding=[1, 2]), (2, 6, 6)),
    "relu": (behind_a_convolution("relu"), (2, 4, 4)),
    "joins": (
        [
            layer("first", "conv2d", channels=2, kernel=1),
            layer("way", "relu"),
            layer("sum", "add", "way", "first", "way"),
            layer("both", "concat", "sum", "first"),
            layer("flat", "flatten"),
            layer("loss", "squared_error", "flat", "labels"),
        ],
        (3, 4, 4),
    ),
}


def classes(network: Network) -> int:
    return next(node["shape"][1] for node in network.nodes if node["name"] == network.output)


def integers(network: Network, seed: int) -> tuple[Weights, dict[str, NDArray[Any]]]:
    draw = np.random.default_rng(seed)
    weights = {p["name"]: draw.integers(-2, 3, p["shape"]).astype(np.float32) for p in network.parameters}
    images = draw.integers(-2, 3, network.nodes[0]["shape"]).astype(np.float32)
    return weights, {"images": images, "labels": draw.integers(0, classes(network), len(images))}


def built(
    plugin: Path, network: Network, weights: Weights, threads: str = "1", memory_format: str | None = None
) -> Backend:
    backend = Backend(plugin)
    backend.configure("threads", threads)
    if memory_format is not None:
        backend.configure("torch.memory_format", memory_format)
    backend.build(network, weights, SGD, ["train", "gradient", "forward"])
    return backend


def assert_same(ours: dict[str, Any], judge: dict[str, Any], *, tolerance: float = 0.0) -> None:
    assert set(ours) == set(judge)
    for name, expected in judge.items():
        if tolerance == 0.0:
            np.testing.assert_array_equal(ours[name], expected, err_msg=name)
        else:
            error = np.linalg.norm(ours[name] - expected) / np.linalg.norm(expected)
            assert error <= tolerance, name


@THREADS
@FORMATS
@pytest.mark.parametrize("name", EXACT)
def test_it_is_exact_on_integers(libtorch: Path, name: str, threads: str, memory_format: str) -> None:
    nodes, shape = EXACT[name]
    network = Network(nodes, 4, images_and_labels(shape))
    weights, batch = integers(network, seed=1)
    ours = built(libtorch, network, weights, threads, memory_format)
    judge = built(REFERENCE, network, weights)
    assert ours.step("gradient", batch) == judge.step("gradient", batch)
    for role in ("activation", "gradient"):
        assert_same(ours.tensors(role), judge.tensors(role))
    assert_same(ours.tensors("parameter"), weights)
    np.testing.assert_array_equal(ours.evaluate(batch), judge.evaluate(batch))
    for _ in range(2):  # the second has a velocity
        ours.step("train")
        judge.step("train")
    assert_same(ours.tensors("parameter"), judge.tensors("parameter"), tolerance=1e-5)
    assert_same(ours.tensors("optimizer"), judge.tensors("optimizer"), tolerance=1e-5)


def real_network() -> Network:
    nodes = [
        layer("conv", "conv2d", channels=4, kernel=3),
        layer("tanh", "tanh"),
        layer("pool", "max_pool2d", kernel=2),
        layer("flat", "flatten"),
        layer("fc1", "dense", units=20),
        layer("sigmoid", "sigmoid"),
        layer("fc2", "dense", units=5),
        layer("loss", "softmax_cross_entropy", "fc2", "labels"),
    ]
    return Network(nodes, 16, images_and_labels((2, 8, 8)))


def joined_network() -> Network:
    nodes = [
        layer("conv", "conv2d", channels=4, kernel=3),
        layer("relu", "relu"),
        layer("pool", "max_pool2d", "relu", kernel=2),
        layer("sum", "add", "relu", "conv"),
        layer("mean", "avg_pool2d", "sum", kernel=2),
        layer("both", "concat", "pool", "mean"),
        layer("flat", "flatten"),
        layer("fc1", "dense", units=5),
        layer("fc2", "dense", "flat", units=5),
        layer("flat_sum", "add", "fc1", "fc2"),
        layer("loss", "softmax_cross_entropy", "flat_sum", "labels"),
    ]
    return Network(nodes, 16, images_and_labels((2, 8, 8)))


def normalized_network() -> Network:
    nodes = [
        layer("conv1", "conv2d", channels=4, kernel=3, bias=False),
        layer("norm1", "batch_norm", momentum=0.3),
        layer("relu1", "relu6"),
        layer("lrn1", "local_response_norm", size=3, alpha=0.5, k=2),
        layer("conv2", "conv2d", channels=6, kernel=3, bias=False),
        layer("norm2", "batch_norm", epsilon=1e-3),
        layer("relu2", "leaky_relu", slope=0.2),
        layer("lrn2", "local_response_norm", size=5, alpha=0.1, beta=0.6, alpha_over_size=False),
        layer("pool", "global_avg_pool2d"),
        layer("fc1", "dense", units=7, bias=False),
        layer("norm3", "batch_norm"),
        layer("fc2", "dense", units=5),
        layer("loss", "softmax_cross_entropy", "fc2", "labels"),
    ]
    return Network(nodes, 16, images_and_labels((2, 8, 8)))


NETWORKS = pytest.mark.parametrize("make_network", [real_network, joined_network, normalized_network])


def real_numbers(network: Network) -> tuple[Weights, dict[str, NDArray[Any]]]:
    draw = np.random.default_rng(7)
    weights = {p["name"]: draw.normal(0, 0.3, p["shape"]).astype(np.float32) for p in network.parameters}
    weights |= {p["name"]: draw.uniform(0.5, 1.5, p["shape"]).astype(np.float32) for p in network.states}
    images = draw.normal(size=network.nodes[0]["shape"]).astype(np.float32)
    return weights, {"images": images, "labels": draw.integers(0, classes(network), len(images))}


@THREADS
@NETWORKS
def test_it_trains_as_the_reference_does_in_steps_and_in_parts(
    libtorch: Path, threads: str, make_network: Callable[[], Network]
) -> None:
    network = make_network()
    weights, batch = real_numbers(network)
    ours, judge = built(libtorch, network, weights, threads), built(REFERENCE, network, weights)
    for backend in (ours, judge):
        backend.step("train", batch)
    losses = []
    for part in ("forward", "loss", "backward", "update"):
        losses.append(ours.part(part))
    assert losses[1] == pytest.approx(judge.step("train"), rel=1e-6)
    assert_same(ours.tensors("parameter"), judge.tensors("parameter"), tolerance=1e-5)
    ours.reset()
    assert_same(ours.tensors("parameter"), {one["name"]: weights[one["name"]] for one in network.parameters})
    assert not any(velocity.any() for velocity in ours.tensors("optimizer").values())
    assert np.isnan(ours.step("forward"))


@THREADS
@FORMATS
def test_two_runs_are_bitwise_equal(libtorch: Path, threads: str, memory_format: str) -> None:
    network = real_network()
    weights, batch = real_numbers(network)
    runs = []
    for _ in range(2):
        backend = built(libtorch, network, weights, threads, memory_format)
        losses = [backend.step("train", batch) for _ in range(20)]
        runs.append({**backend.tensors("parameter"), "losses": np.array(losses)})
    assert_same(*runs)


def test_tensors_can_be_read_and_written(libtorch: Path) -> None:
    network = real_network()
    weights, batch = real_numbers(network)
    backend = built(libtorch, network, weights)
    assert not any(gradient.any() for gradient in backend.tensors("gradient").values())
    with pytest.raises(TimetrialError, match="kept by a step of the task gradient only"):
        backend.tensors("activation")
    backend.step("gradient", batch)
    assert set(backend.tensors("activation")) == {node["name"] for node in network.nodes[2:-1]}
    bias = np.array([0.0, 50.0, 0.0, 0.0, 0.0])
    backend.write_tensor("fc2.bias", bias)
    np.testing.assert_array_equal(backend.tensors("parameter")["fc2.bias"], bias)
    assert (backend.evaluate(batch).argmax(axis=1) == 1).all()
    with pytest.raises(Unavailable, match="activations cannot be written"):
        backend.write_tensor("fc2", np.zeros((16, 5)), role="activation")


def test_settings_are_read_back(libtorch: Path) -> None:
    backend = Backend(libtorch)
    for count in ("2", "1"):
        backend.configure("threads", count)
        reading = backend.read_setting("threads")
        assert (reading.effective, "omp_get_max_threads()" in reading.how_read) == (count, True)
    backend.configure("parallel", "product")
    assert backend.read_setting("parallel").effective == "product"
    for word in ("false", "true"):
        backend.configure("torch.mkldnn", word)
        assert backend.read_setting("torch.mkldnn").effective == word
    for word in ("channels_last", "contiguous"):
        backend.configure("torch.memory_format", word)
        assert backend.read_setting("torch.memory_format").effective == word


@pytest.mark.effect("torch.memory_format")
@pytest.mark.effect("torch.mkldnn")
@pytest.mark.parametrize(
    ("name", "words"),
    # What was asked last stays in force for the process: in the end as it was.
    [("torch.memory_format", ("channels_last", "contiguous")), ("torch.mkldnn", ("false", "true"))],
)
def test_a_setting_has_bits_of_its_own(libtorch: Path, name: str, words: tuple[str, str]) -> None:
    """Of another algorithm, whose sums are taken in another order."""
    beside = {"threads": "1", "torch.mkldnn": "false"}
    one, other = (gradient(libtorch, {**beside, name: word}) for word in words)
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("threads", "0", "threads = '0': expected a whole number from 1"),
        ("parallel", "images", "parallel = 'images': LibTorch has its threads inside each operation only"),
        ("torch.mkldnn", "yes", "torch.mkldnn = 'yes': expected true or false"),
        ("torch.memory_format", "nhwc", "'nhwc': expected contiguous or channels_last"),
        ("thread", "1", "no setting 'thread'; it has: threads, parallel, torch.mkldnn, torch.memory_format"),
    ],
)
def test_settings_that_cannot_be(libtorch: Path, name: str, value: str, said: str) -> None:
    with pytest.raises(Unavailable) as raised:
        Backend(libtorch).configure(name, value)
    assert said in str(raised.value)


def test_a_proof_launch_passes_and_names_what_ran(libtorch: Path, tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path / "launch", str(libtorch), network=small_network(tmp_path), purpose="proof",
        settings={"threads": "1", "parallel": "product", "torch.memory_format": "channels_last"},
    )  # fmt: skip
    record = run_launch(plan)
    assert record.outcome == "ok", words(record)
    assert record.parity is not None
    assert record.parity.status == "passed"
    statuses = {setting.name: setting.status for setting in record.settings}
    assert (statuses["parallel"], statuses["torch.memory_format"]) == ("applied", "applied")
    target = building.make_plan(building.recipe_named("libtorch")).target
    assert target.version.startswith(record.facts["torch.version"])
    assert record.facts["torch.parallel"] == "OpenMP"
    mapped = {library.path for library in record.libraries}
    assert {str(target.library), str(libtorch)} <= mapped
    # The system's libgomp would have the same name: the record has the path of the one that is mapped.
    assert {str(target.library.parent / "libgomp.so.1")} == {path for path in mapped if "libgomp" in path}


def test_lack_of_memory_is_no_crash(libtorch: Path) -> None:
    script = f"""
import resource
from timetrial.core import Backend, Network, images_and_labels
from timetrial.errors import TimetrialError
backend = Backend({str(libtorch)!r})
nodes = [dict(name="fc", kind="dense", attributes=dict(units=20000)),
         dict(name="loss", kind="softmax_cross_entropy", inputs=["fc", "labels"])]
network = Network(nodes, 4, images_and_labels((20000,)))
import numpy as np
weights = {{p["name"]: np.zeros(p["shape"], np.float32) for p in network.parameters}}
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
# The weights alone take three times that.
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), used + (1 << 29)))
try:
    backend.build(network, weights, dict(name="sgd", learning_rate=0.1))
except (TimetrialError, MemoryError) as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("MemoryError"), done.stdout + done.stderr


def test_labels_that_torch_would_leave_out(libtorch: Path, tmp_path: Path) -> None:
    network = real_network()
    weights, batch = real_numbers(network)
    batch["labels"][3] = -100
    with pytest.raises(InputError, match="'labels' have -100 at 3"):
        built(libtorch, network, weights).step("train", batch)


def test_a_plugin_for_another_torch_refuses_to_work(tmp_path: Path, own_cache: Path) -> None:
    """Compiled with the headers of a version that is not the one that is mapped."""
    plan = building.make_plan(building.recipe_named("libtorch"))
    header = "torch/headeronly/version.h"
    text = (plan.target.includes[0] / header).read_text()
    other = tmp_path / "include" / header
    other.parent.mkdir(parents=True)
    other.write_text(re.sub(r'"(\d+\.\d+)\.\d+"', r'"\1.99"', text))
    target = replace(plan.target, includes=(tmp_path / "include", *plan.target.includes))
    plugin = building.ensure(replace(plan, target=target), lambda words: None)
    with pytest.raises(Unavailable, match=r"was built for torch 2\.\d+\.99, but .* mapped is [\d.]+\. Build"):
        Backend(plugin)


@NETWORKS
def test_a_profiled_step_is_a_training_step_node_by_node(
    libtorch: Path, make_network: Callable[[], Network]
) -> None:
    network = make_network()
    weights, batch = real_numbers(network)
    ours, judge = built(libtorch, network, weights), built(libtorch, network, weights)
    for backend in (ours, judge):
        backend.step("train", batch)
    times = ours.profile(batch)
    judge.step("train")
    assert_same(ours.tensors("parameter"), judge.tensors("parameter"))
    assert all(ns > 0 for _, _, ns in times)
    outside = ("input", "softmax_cross_entropy")
    layers = [str(node["name"]) for node in network.nodes if node["kind"] not in outside]
    found: dict[str, list[str]] = {}
    for node, direction, _ in times:
        found.setdefault(direction, []).append(node)
    with_weights = list(dict.fromkeys(str(p["name"]).split(".")[0] for p in network.parameters))
    assert found == {"forward": layers, "loss": ["loss"], "backward": layers[::-1], "update": with_weights}


@FORMATS
def test_running_values_are_ours_in_every_step(libtorch: Path, memory_format: str) -> None:
    """Torch moves the running variance by the unbiased one: 1/15 more, of flat values here."""
    network = normalized_network()
    weights, batch = real_numbers(network)
    initial = {one["name"]: weights[one["name"]] for one in network.states}
    ours = built(libtorch, network, weights, "1", memory_format)
    judge = built(REFERENCE, network, weights)
    for task in ("gradient", "train", "train"):
        ours.step(task, batch)
        judge.step(task, batch)
        assert_same(ours.tensors("state"), judge.tensors("state"), tolerance=1e-5)
    kept = ours.tensors("state")
    np.testing.assert_allclose(ours.evaluate(batch), judge.evaluate(batch), rtol=1e-4, atol=1e-5)
    assert_same(ours.tensors("state"), kept)
    ours.reset()
    assert_same(ours.tensors("state"), initial)
    for one in (ours, judge):
        one.write_tensor("norm3.running_var", np.full(7, 0.25, np.float32), role="state")
        one.reset() if one is judge else None
    assert ours.tensors("state")["norm3.running_var"] == pytest.approx(0.25)
