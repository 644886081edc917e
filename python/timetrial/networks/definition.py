"""What a network file gives: the nodes, and the defaults that make its name alone a complete workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timetrial.core import Input

Node = dict[str, Any]  # {name, kind, inputs, attributes}

# LeNet-5 learns with every seed at 0.02; at 0.05 it diverges with some.
DEFAULT_OPTIMIZER: Mapping[str, Any] = {
    "name": "sgd",
    "learning_rate": 0.02,
    "momentum": 0.9,
    "weight_decay": 0.0,
}


def layer(name: str, kind: str, *, inputs: list[str] | None = None, **attributes: Any) -> Node:
    """A node. Without `inputs` it takes the output of the node before; the first one takes the images."""
    return {"name": name, "kind": kind, "attributes": attributes, **({"inputs": inputs} if inputs else {})}


class Graph:
    """Nodes as they are added. Each call gives the node's name, for those that read its output."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, name: str, kind: str, *inputs: str, **attributes: Any) -> str:
        """Without inputs the node takes the output of the node before."""
        self.nodes.append(layer(name, kind, inputs=[*inputs], **attributes))
        return name

    def classifier(self, name: str = "fc") -> list[Node]:
        """Ends with a layer of an output for each class and the loss, and gives all nodes."""
        self.add(name, "dense", units="classes")
        self.add("loss", "softmax_cross_entropy", name, "labels")
        return self.nodes


@dataclass(frozen=True)
class Facts:
    """A network on paper, for samples of this shape and so many classes. The numbers are written down by
    hand: tests/workloads counts them again in the graph."""

    words: str  # what it is, in a line
    source: str
    sample: tuple[int, ...]  # (C, H, W), (T, F) or (T)
    classes: int  # 0: it predicts no classes
    parameters: int  # numbers that are trained, without the states of layers
    multiply_accumulates: int  # of the forward pass of one sample; sums, pooling and normalization have none
    counted: str  # whence the two numbers are, and where published ones count otherwise
    differs: str = ""  # from its source: what cannot be said in a graph of these layers
    inputs: tuple[Input, ...] = ()  # what it reads, where that is not an image of the shape `sample`


@dataclass(frozen=True)
class NetworkDefinition:
    """Nodes in the order of the data, and what to train them on unless the user says otherwise.

    An attribute may have the value "classes": it becomes the number of classes of the dataset.
    """

    name: str
    nodes: list[Node]
    dataset: str = "digits28"
    batch_size: int = 64
    optimizer: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_OPTIMIZER))
    epochs: int = 12
    facts: Facts | None = None  # of a network of the user's own: none

    def nodes_for(self, classes: int) -> list[Node]:
        """The nodes with "classes" replaced by the number of classes of a dataset."""
        return [
            {
                **node,
                "attributes": {
                    key: classes if value == "classes" else value
                    for key, value in node.get("attributes", {}).items()
                },
            }
            for node in self.nodes
        ]
