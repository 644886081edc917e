from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetrial import core
from timetrial.errors import InputError


def test_nodes_are_complete(network: core.Network) -> None:
    assert [node["name"] for node in network.nodes] == [
        "images",
        "labels",
        "conv",
        "pool",
        "flat",
        "fc",
        "loss",
    ]
    conv = network.nodes[2]
    assert conv["inputs"] == ["images"]
    assert conv["shape"] == [8, 4, 4, 4]
    assert conv["attributes"] == {
        "channels": 4, "kernel_h": 3, "kernel_w": 3, "stride_h": 1, "stride_w": 1,
        "padding_h": 0, "padding_w": 0, "padding_end_h": 0, "padding_end_w": 0,
        "dilation_h": 1, "dilation_w": 1, "groups": 1, "bias": 1,
    }  # fmt: skip
    assert conv["parameters"] == [
        {
            "name": "conv.weight", "shape": [4, 1, 3, 3], "role": "parameter", "decays": True,
            "initializer": "glorot_uniform", "fan_in": 9, "fan_out": 36,
        },
        {
            "name": "conv.bias", "shape": [4], "role": "parameter", "decays": True,
            "initializer": "zeros", "fan_in": 0, "fan_out": 0,
        },
    ]  # fmt: skip
    assert (network.output, network.loss, network.batch_size) == ("fc", "loss", 8)
    assert network.parameter_count == 4 * 9 + 4 + 3 * 16 + 3
    assert network.parameter_bytes == 4 * network.parameter_count


def test_work_of_each_task(network: core.Network) -> None:
    conv, fc = 8 * 4 * 4 * 4 * 9, 8 * 16 * 3
    assert network.multiply_accumulates("forward") == conv + fc
    assert network.multiply_accumulates("train") == 2 * conv + 3 * fc  # no data gradient of the first layer
    assert network.multiply_accumulates("gradient", "fc") == 3 * fc
    assert network.multiply_accumulates(layer="pool") == 0
    assert network.bytes("forward", "fc") == 4 * (8 * 16 + 51 + 8 * 3)
    assert network.bytes() > network.bytes("forward")


def test_the_job_form_means_the_same_network(network: core.Network) -> None:
    job = json.loads(json.dumps(network.to_job()))
    assert (job["output"], job["loss"]) == ("fc", "loss")
    assert core.Network(job["nodes"], 8, core.images_and_labels((1, 6, 6))).nodes == network.nodes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda n: n.pop(2),
            "layer 'fc' (dense) needs a flat input (N, F); 'pool' gives (8, 4, 2, 2): put a flatten",
        ),
        (lambda n: n[0].update(kind="conv2"), "unknown kind 'conv2'. Did you mean 'conv2d'?"),
        (
            lambda n: n[0].update(kind="Conv2d"),
            "'conv' has the unknown kind 'Conv2d'. Did you mean 'conv2d'?",
        ),
        (lambda n: n[0].update(kind="MaxPooling2D"), "Did you mean 'max_pool2d'?"),
        (lambda n: n[0].update(kind="linear"), "unknown kind 'linear'. Did you mean 'dense'?"),
        (lambda n: n[0].update(kind="lineer"), "unknown kind 'lineer'. Known:"),
        (lambda n: n[0]["attributes"].update(kernel=7), "7x7 kernel"),
        (lambda n: n[0]["attributes"].update(kernel=[3, 3, 3]), "kernel = [3, 3, 3]"),
        (lambda n: n[0]["attributes"].update(kernel={"h": 3}), "expected a number"),
        (lambda n: n[0].update(attribute={}), "has no 'attribute'. Did you mean 'attributes'?"),
        (lambda n: n[0].pop("name"), "has no 'name'"),
        (lambda n: n[0].pop("kind"), "has no 'kind'"),
        (lambda n: n[0].update(inputs="images"), "expected a list of names"),
        (lambda n: n[0].update(name=3), "expected a text"),
        (lambda n: n.append(5), "node 5; expected a table"),
        (lambda n: n.pop(), "has no loss"),
    ],
)
def test_wrong_nodes_are_named(nodes: list[dict[str, Any]], change: Any, words: str) -> None:
    change(nodes)
    with pytest.raises(core.NetworkError) as error:
        core.Network(nodes, 8, core.images_and_labels((1, 6, 6)))
    assert words in str(error.value)
    assert isinstance(error.value, InputError)


def test_wrong_arguments_are_named(nodes: list[dict[str, Any]], network: core.Network) -> None:
    with pytest.raises(InputError, match="batch_size = 0"):
        core.Network(nodes, 0, core.images_and_labels((1, 6, 6)))
    with pytest.raises(InputError, match=r"needs images \(N, C, H, W\); 'images' gives \(8, 6, 6\)"):
        core.Network(nodes, 8, core.images_and_labels((6, 6)))
    with pytest.raises(InputError, match="an extent of the input 'images' = -6"):
        core.Network(nodes, 8, core.images_and_labels((1, 6, -6)))
    with pytest.raises(InputError, match="the data's 'extra' are the input of no layer"):
        core.Network(nodes, 8, [*network.inputs, core.Input("extra", (3,))])
    with pytest.raises(InputError, match=r"unknown task 'trian'. Did you mean 'train'"):
        network.multiply_accumulates("trian")
    with pytest.raises(core.NetworkError, match=r"no node 'conv9'. Did you mean 'conv'"):
        network.multiply_accumulates(layer="conv9")


@given(
    size=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    kernel=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_windows_are_counted_as_they_slide(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
) -> None:
    expected = [
        len(range(0, size[axis] + 2 * padding[axis] - kernel[axis] + 1, stride[axis])) for axis in (0, 1)
    ]
    attributes = {"channels": 2, "kernel": list(kernel), "stride": list(stride), "padding": list(padding)}
    nodes = [
        {"name": "c", "kind": "conv2d", "attributes": attributes},
        {"name": "f", "kind": "flatten"},
        {"name": "l", "kind": "squared_error", "inputs": ["f", "labels"]},
    ]
    if 0 in expected:
        with pytest.raises(core.NetworkError, match="larger than its images"):
            core.Network(nodes, 1, core.images_and_labels((1, *size)))
    else:
        assert core.Network(nodes, 1, core.images_and_labels((1, *size))).nodes[2]["shape"] == [
            1,
            2,
            *expected,
        ]


def test_bytes_that_nobody_can_do_without() -> None:
    """By hand: f32, a batch of 2; what dense layers read, and copies of 22 numbers of fc1 and fc2."""
    nodes = [
        {"name": "fc1", "kind": "dense", "attributes": {"units": 4}},
        {"name": "relu1", "kind": "relu"},
        {"name": "fc2", "kind": "dense", "attributes": {"units": 2, "bias": False}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc2", "labels"]},
    ]
    network = core.Network(nodes, 2, core.images_and_labels((3,)))
    weights = 4 * (4 * 3 + 4 + 2 * 4)
    assert network.least_bytes("gradient") == core.LeastBytes(weights, weights, 0, 4 * 2 * (3 + 4))
    assert network.least_bytes("train", states=1) == core.LeastBytes(
        weights, weights, weights, 4 * 2 * (3 + 4)
    )
    assert network.least_bytes("forward") == core.LeastBytes(weights, 0, 0, 4 * 2 * (4 + 4))
    assert network.least_bytes("train", states=2).total == 4 * weights + 56
    assert network.least_bytes("train").activations <= network.activation_bytes + 4 * 2 * 3
