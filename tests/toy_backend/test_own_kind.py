"""A kind of layers that a user registers: inferred, proven by the judge, trained by a plug-in that has it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from launching import make_plan, words

import timetrial as tt
from timetrial.core import Backend, Input, Network, images_and_labels, native
from timetrial.launch import run_launch
from timetrial.records.model import LaunchRecord
from timetrial.workloads.gradient_check import check_gradients

HERE = Path(__file__).parent
REFERENCE = native.native_dir() / "backends" / "reference.so"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The user's module, as the command line finds it; what a test registers in its place goes again."""
    monkeypatch.chdir(HERE)
    monkeypatch.syspath_prepend(str(HERE))
    module = importlib.import_module("gate")
    yield module
    tt.layer_kind(module.Gate)
    tt.layer_kind(module.Center)


@pytest.fixture
def gated(built: Callable[..., Path]) -> Path:
    return built("gated")


def launch(
    folder: Path, backend: object, purpose: str = "proof", network: str = "network", task: str = "train"
) -> LaunchRecord:
    plan = make_plan(
        folder,
        str(backend),
        network=f"gate:{network}",
        purpose=purpose,
        task=task,
        learning_rate=0.002,
        weight_decay=0.01,
    )
    return run_launch(plan)


@pytest.mark.parametrize("purpose", ["proof", "speed"])
def test_it_is_proven_and_judged_at_the_end(
    tmp_path: Path, gate: ModuleType, gated: Path, purpose: str
) -> None:
    record = launch(tmp_path / "launch", gated, purpose)
    assert record.outcome == "ok", words(record)
    judged = record.parity if purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed"
    assert {"left.weight", "right.weight"} <= {one.tensor.split(" ")[-1] for one in judged.comparisons}


def test_whoever_computes_something_else_is_wrong(tmp_path: Path, gate: ModuleType, gated: Path) -> None:
    """Here the definition is another one: it has twice the slope."""

    class Steeper(gate.Gate):  # type: ignore[misc, name-defined]
        def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
            return super().forward(steeper(layer), inputs, parameters)

        def backward(self, layer: tt.Layer, *arguments: Any) -> Any:
            return super().backward(steeper(layer), *arguments)

    def steeper(layer: tt.Layer) -> tt.Layer:
        attributes = {**layer.attributes, "slope": 2 * layer.attributes["slope"]}
        return tt.Layer(layer.name, attributes, layer.input_shapes, layer.shape)

    tt.layer_kind(Steeper)
    record = launch(tmp_path / "launch", gated)
    assert record.outcome == "wrong", words(record)
    assert "relative" in (record.reason or "")


@pytest.mark.parametrize("purpose", ["proof", "speed"])
@pytest.mark.parametrize("task", ["train", "gradient", "forward"])
def test_states_of_layers_are_judged(
    tmp_path: Path, gate: ModuleType, gated: Path, task: str, purpose: str
) -> None:
    record = launch(tmp_path / "launch", gated, purpose, "centered", task)
    assert record.outcome == "ok", words(record)
    judged = record.parity if purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed"
    if task == "train":
        assert any(one.tensor.endswith("state center.mean") for one in judged.comparisons)


@pytest.mark.parametrize("purpose", ["proof", "speed"])
def test_a_framework_may_have_the_kind(tmp_path: Path, gate: ModuleType, purpose: str) -> None:
    record = launch(tmp_path / "launch", HERE / "numpy_framework", purpose, "whitened")
    assert record.outcome == "ok", words(record)
    judged = record.parity if purpose == "proof" else record.end
    assert judged is not None
    assert judged.status == "passed"
    assert any(one.tensor.endswith("state center.mean") for one in judged.comparisons)


WRONG_STATES = {
    "state center.mean": {"kept": 0.89},  # moves a tenth more than it should
    "output": {"forward": lambda _self, _layer, inputs, _parameters: inputs[0] - inputs[0].mean(axis=0)},
}


@pytest.mark.parametrize("tensor", ["state center.mean", "output"])
@pytest.mark.parametrize("purpose", ["proof", "speed"])
def test_whoever_keeps_another_state_is_wrong(
    tmp_path: Path, gate: ModuleType, gated: Path, tensor: str, purpose: str
) -> None:
    """Here the definition is another one."""
    tt.layer_kind(type("Center", (gate.Center,), WRONG_STATES[tensor]))
    record = launch(tmp_path / "launch", gated, purpose, "centered")
    assert record.outcome == "wrong", words(record)
    assert tensor in (record.reason or "")


PLANTED = {
    1: "first evaluation: state center.mean that it changed",
    2: "initial value center.mean",
    3: "step 1: state center.mean",
    4: "parameter right.weight",
}


@pytest.mark.parametrize("defect", PLANTED)
def test_what_a_layer_keeps_is_judged(
    tmp_path: Path, gate: ModuleType, built: Callable[..., Path], defect: int
) -> None:
    record = launch(tmp_path / "launch", built("gated", f"-DPLANTED={defect}"), network="centered")
    assert record.outcome == "wrong", words(record)
    assert PLANTED[defect] in (record.reason or "")


def test_a_backend_without_it_says_so(tmp_path: Path, gate: ModuleType) -> None:
    record = launch(tmp_path / "launch", "eigen")
    assert record.outcome == "unavailable"
    assert "gate" in (record.reason or "")


def test_the_command_line_knows_it_by_the_networks_module(tmp_path: Path, gated: Path) -> None:
    program = Path(sys.executable).with_name("timetrial")
    command = [program, "run", "network=gate:network", f"backend={gated}", "launches=2"]
    ran = subprocess.run(
        [*command, "effort=quick", "--results", str(tmp_path)], capture_output=True, text=True, cwd=HERE
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " · proven · " in ran.stdout
    assert str(gated) in ran.stdout


class Doubled(tt.LayerDefinition):
    """To be spoiled."""

    kind = "doubled"

    def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        """Twice the input."""
        return 2 * inputs[0]

    def backward(self, layer: tt.Layer, inputs: Any, parameters: Any, output: Any, gradient: Any) -> Any:
        """Of that."""
        return [2 * gradient], []


def spoiled(**members: Any) -> type[tt.LayerDefinition]:
    return type("Spoiled", (Doubled,), members)


def prepare_with(folder: Path, definition: type[tt.LayerDefinition]) -> None:
    """As a run would, before it starts anything."""
    tt.layer_kind(definition)
    file = folder / "network.toml"
    file.write_text(
        """
        nodes = [
            { name = "flat", kind = "flatten" },
            { name = "fc", kind = "dense", attributes = { units = "classes" } },
            { name = "twice", kind = "doubled" },
            { name = "loss", kind = "softmax_cross_entropy", inputs = ["twice", "labels"] },
        ]
        """,
        encoding="utf-8",
    )
    make_plan(folder / "launch", "reference", network=str(file))


def _raise(*_: Any) -> Any:
    raise ZeroDivisionError("by nought")


SPOILED = {
    "backward is not the derivative of forward: along a direction of 'fc'": {
        "backward": lambda _s, _l, _i, _p, _o, gradient: ([2.01 * gradient], [])
    },
    "backward failed: ZeroDivisionError: by nought": {"backward": _raise},
    "backward gave 0 gradients of inputs; expected 1": {"backward": lambda *_: ([], [])},
    "backward gave 'fc' a gradient of shape (); expected (2, 10)": {"backward": lambda *_: ([0.0], [])},
    "forward failed: ZeroDivisionError: by nought": {"forward": _raise},
    "forward gave shape (2,); expected (2, 10)": {
        "forward": lambda _s, _l, inputs, _p: inputs[0].sum(axis=1)
    },
    "shape failed: ZeroDivisionError: by nought": {"shape": _raise},
    "shape gave (3, 10); expected whole numbers from 1, the batch (16) first": {"shape": lambda *_: (3, 10)},
    "parameters gave 'weight'; expected timetrial.LayerParameter": {"parameters": lambda *_: ["weight"]},
    "parameter 'twice.w': there is no initializer 'one'. Did you mean 'ones'?": {
        "parameters": lambda *_: [tt.LayerParameter("w", (3,), "one")]
    },
    "glorot_uniform needs to know its fans; fan_in = 0": {
        "parameters": lambda *_: [tt.LayerParameter("w", (3,), "glorot_uniform")]
    },
    "parameters gave 'w' behind a state; expected states last": {
        "parameters": lambda *_: [tt.LayerParameter("m", (3,), is_state=True), tt.LayerParameter("w", (3,))]
    },
    "next_states failed: NotImplementedError": {
        "parameters": lambda *_: [tt.LayerParameter("m", (3,), is_state=True)]
    },
    "next_states gave shapes [(2,)]; expected [(3,)]": {
        "parameters": lambda *_: [tt.LayerParameter("m", (3,), is_state=True)],
        "next_states": lambda *_: [np.zeros(2)],
    },
}


@pytest.mark.parametrize("expected", SPOILED)
def test_a_wrong_definition_is_refused_before_anything_starts(tmp_path: Path, expected: str) -> None:
    with pytest.raises(tt.InputError) as refused:
        prepare_with(tmp_path, spoiled(**SPOILED[expected]))
    assert expected in str(refused.value)


def test_a_right_one_is_not(tmp_path: Path) -> None:
    prepare_with(tmp_path, Doubled)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"kind": "relu"}, "'relu' is a kind of layers already"),
        ({"kind": "two words"}, "'two words'; expected 1 to 64 letters"),
        ({"kind": ""}, "has no name"),
        ({"attributes": ("scale",)}, "attribute 'scale'; expected a timetrial.Attribute"),
        ({"attributes": (tt.Attribute("scale", "reel"),)}, "'reel'. Did you mean 'real'?"),  # type: ignore[arg-type]
        ({"mask_rate": "rate"}, "mask_rate is 'rate'; expected the name of an attribute of the type real"),
        (
            {"attributes": (tt.Attribute("rate", "real"),), "mask_rate": "rate", "several": True},
            "a kind with a mask takes one input beside that; this one takes several inputs",
        ),
        (
            {"attributes": (tt.Attribute("rate", "real"),), "mask_rate": "rate", "kinks": (0.0,)},
            "this one has kinks",
        ),
    ],
)
def test_a_kind_that_cannot_be_registered(members: dict[str, Any], expected: str) -> None:
    with pytest.raises(tt.InputError) as refused:
        tt.layer_kind(spoiled(**members))
    assert expected in str(refused.value)


@tt.layer_kind
class Looked(tt.LayerDefinition):
    """Rows of a table by whole numbers: an embedding."""

    kind = "looked"
    attributes = (tt.Attribute("rows", "whole", least=1), tt.Attribute("features", "whole", least=1))
    reads_integers = True

    def shape(self, layer: tt.Layer) -> tuple[int, ...]:
        """(N, T, F) of (N, T)."""
        return (*layer.input_shapes[0], layer.attributes["features"])

    def parameters(self, layer: tt.Layer) -> list[tt.LayerParameter]:
        """The table."""
        rows, features = layer.attributes["rows"], layer.attributes["features"]
        return [tt.LayerParameter("weight", (rows, features), "he_uniform", fan_in=features)]

    def integers_below(self, layer: tt.Layer) -> int:
        """A row each."""
        return int(layer.attributes["rows"])

    def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        """One row for each number."""
        return parameters[0][inputs[0].astype(int)]

    def backward(self, layer: tt.Layer, inputs: Any, parameters: Any, output: Any, gradient: Any) -> Any:
        """Whole numbers have no gradient."""
        table = np.zeros(parameters[0].shape)
        np.add.at(table, inputs[0].astype(int), gradient)
        return [None], [table]


def test_a_layer_may_read_whole_numbers() -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "rows", "kind": "looked", "inputs": ["words"], "attributes": {"rows": 7, "features": 3}},
        {"name": "flat", "kind": "flatten"},
        {"name": "loss", "kind": "squared_error", "inputs": ["flat", "labels"]},
    ]
    inputs = [Input("words", (2,), "i64"), Input("labels", (), "i64", "target")]
    network = Network(nodes, 2, inputs)
    assert network.values_below("words") == 7
    table = np.arange(21, dtype=np.float32).reshape(7, 3) / 10
    backend = Backend(REFERENCE)
    backend.build(network, {"rows.weight": table}, tasks=("gradient",))
    batch = {"words": np.array([[1, 6], [6, 6]]), "labels": np.array([0, 5])}
    loss = backend.step("gradient", batch)
    flat = table.astype(np.float64)[batch["words"]].reshape(2, 6)
    target = np.eye(6)[batch["labels"]]
    assert loss == pytest.approx(np.mean((flat - target) ** 2))
    expected = np.zeros((7, 3))
    np.add.at(expected, batch["words"].ravel(), (2 * (flat - target) / 12).reshape(4, 3))
    np.testing.assert_allclose(backend.tensors("gradient")["rows.weight"], expected, atol=1e-12)
    with pytest.raises(tt.InputError, match="'words' have 7 at 0; expected 0 to 6"):
        backend.step("gradient", {"words": np.array([[7, 0], [0, 0]])})


@tt.layer_kind
class Muted(tt.LayerDefinition):
    """What a mask drops is replaced by -1, not by 0."""

    kind = "muted"
    attributes = (tt.Attribute("share", "real", 0.25, least=0.0),)
    mask_rate = "share"

    def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        """As it is in inference."""
        x, mask = inputs
        return np.where(mask > 0, x, -1.0) if layer.training else x

    def backward(self, layer: tt.Layer, inputs: Any, parameters: Any, output: Any, gradient: Any) -> Any:
        """None of the mask."""
        return [gradient * (inputs[1] > 0), None], []


def test_a_layer_may_draw_a_mask() -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "fc", "kind": "dense", "attributes": {"units": 3, "bias": False}},
        {"name": "mute", "kind": "muted"},
        {"name": "loss", "kind": "squared_error", "inputs": ["mute", "labels"]},
    ]
    network = Network(nodes, 1, images_and_labels((2,)))
    assert network.inputs[-1] == Input("mute.mask", (3,), "f32", "mask")
    assert network.masks == {"mute.mask": 0.25}
    check_gradients(network)
    backend = Backend(REFERENCE)
    weight = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    backend.build(network, {"fc.weight": weight}, tasks=("gradient", "forward"))
    batch = {"images": [[1.0, 1.0]], "labels": [0], "mute.mask": [[0.0, 4 / 3, 4 / 3]]}
    arrays = {name: np.array(values) for name, values in batch.items()}
    assert backend.step("gradient", arrays) == pytest.approx((4 + 49 + 121) / 3)
    gradient = backend.tensors("gradient")["fc.weight"]
    np.testing.assert_allclose(gradient, [[0, 0], [14 / 3, 14 / 3], [22 / 3, 22 / 3]])
    np.testing.assert_allclose(backend.evaluate(arrays), [[3, 7, 11]])


def test_what_a_definition_raises_in_the_judge_has_its_words() -> None:
    class Failing(Doubled):
        kind = "failing"
        forward = _raise

    tt.layer_kind(Failing)
    nodes: list[dict[str, Any]] = [
        {"name": "fail", "kind": "failing"},
        {"name": "loss", "kind": "squared_error", "inputs": ["fail", "labels"]},
    ]
    backend = Backend(REFERENCE)
    backend.build(Network(nodes, 2, images_and_labels((3,))), {}, tasks=("gradient",))
    with pytest.raises(tt.TimetrialError, match="layer 'fail' \\(failing\\): ZeroDivisionError: by nought"):
        backend.step("gradient", {"images": np.zeros((2, 3)), "labels": np.zeros(2, int)})
