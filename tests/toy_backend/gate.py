"""Kinds of layers that timetrial does not have, as a user would add them."""

from __future__ import annotations

from typing import Any

import numpy as np

import timetrial as tt


@tt.layer_kind
class Gate(tt.LayerDefinition):
    """Of flat values; each feature has a weight."""

    kind = "gate"
    attributes = (
        tt.Attribute("slope", "real", 1.0, least=0.0),
        tt.Attribute("form", "word", "smooth", words=("smooth", "open")),
    )
    formula = "`y[n,f] = w[f] x[n,f] s(x[n,f])`, s(x) = 1 / (1 + exp(-slope x)), or slope"
    source = "Hendrycks and Gimpel, Gaussian error linear units, 2016, section 2"

    def shape(self, layer: tt.Layer) -> tuple[int, ...]:
        """The input's."""
        if len(layer.input_shapes[0]) != 2:
            raise tt.InputError(f"layer '{layer.name}' (gate) needs flat values, not {layer.input_shapes[0]}")
        return layer.input_shapes[0]

    def parameters(self, layer: tt.Layer) -> list[tt.LayerParameter]:
        """One weight for each feature."""
        return [tt.LayerParameter("weight", (layer.input_shapes[0][1],), "ones", decays=False)]

    def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        """The formula."""
        (x,), (w,) = inputs, parameters
        return w * x * self._open(layer, x)

    def backward(self, layer: tt.Layer, inputs: Any, parameters: Any, output: Any, gradient: Any) -> Any:
        """Its derivative."""
        (x,), (w,) = inputs, parameters
        slope, s = layer.attributes["slope"], self._open(layer, x)
        opens = slope * s * (1 - s) if layer.attributes["form"] == "smooth" else 0
        return [gradient * w * (s + x * opens)], [np.sum(gradient * x * s, axis=0)]

    def _open(self, layer: tt.Layer, x: Any) -> Any:
        slope = layer.attributes["slope"]
        return 1 / (1 + np.exp(-slope * x)) if layer.attributes["form"] == "smooth" else slope


@tt.layer_kind
class Center(tt.LayerDefinition):
    """Without their mean: a layer that keeps a state, and has two modes."""

    kind = "center"
    formula = "`y[n,f] = x[n,f] - m[f]`, m the mean over N in training, and the running mean in inference"
    kept = 0.9

    def parameters(self, layer: tt.Layer) -> list[tt.LayerParameter]:
        """The running mean."""
        return [tt.LayerParameter("mean", (layer.input_shapes[0][1],), is_state=True)]

    def forward(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        """The formula."""
        return inputs[0] - (inputs[0].mean(axis=0) if layer.training else layer.states[0])

    def backward(self, layer: tt.Layer, inputs: Any, parameters: Any, output: Any, gradient: Any) -> Any:
        """Every image is part of the mean."""
        return [gradient - gradient.mean(axis=0)], []

    def next_states(self, layer: tt.Layer, inputs: Any, parameters: Any) -> Any:
        """A tenth of the way to the mean of the batch."""
        return [self.kept * layer.states[0] + (1 - self.kept) * inputs[0].mean(axis=0)]


def network() -> list[dict[str, Any]]:
    """One that fans out, through two gates, and joins."""

    def layer(name: str, kind: str, inputs: list[str], **attributes: Any) -> dict[str, Any]:
        return {"name": name, "kind": kind, "inputs": inputs, "attributes": attributes}

    return [
        layer("flat", "flatten", ["images"]),
        layer("fc1", "dense", ["flat"], units=24),
        layer("left", "gate", ["fc1"], slope=1.5),
        layer("right", "gate", ["fc1"], form="open", slope=0.5),
        layer("sum", "add", ["left", "right", "fc1"]),
        layer("fc2", "dense", ["sum"], units="classes"),
        layer("loss", "softmax_cross_entropy", ["fc2", "labels"]),
    ]


def centered() -> list[dict[str, Any]]:
    """The same without means. The gradient of a bias before them would be next to nothing: all rounding."""
    nodes = network()
    nodes[1]["attributes"]["bias"] = False
    nodes[-2]["inputs"] = ["center"]
    return [*nodes[:-2], {"name": "center", "kind": "center", "inputs": ["sum"]}, *nodes[-2:]]


def whitened() -> list[dict[str, Any]]:
    """Softmax regression of images without their mean."""
    return [
        {"name": "flat", "kind": "flatten"},
        {"name": "center", "kind": "center"},
        {"name": "fc", "kind": "dense", "attributes": {"units": "classes"}},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc", "labels"]},
    ]
