"""A multilayer perceptron on 28x28 images, unless told otherwise 784-512-512-10: only matrix products."""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition

WIDTH, DEPTH = 512, 2
INPUTS, CLASSES = 784, 10


def mlp(width: int = WIDTH, depth: int = DEPTH) -> NetworkDefinition:
    """So many hidden layers, each of so many rectified units."""
    graph = Graph()
    before = graph.add("flat", "flatten", "images")
    for number in range(1, depth + 1):
        units = graph.add(f"fc{number}", "dense", before, units=width)
        before = graph.add(f"relu{number}", "relu", units)
    last = graph.add(f"fc{depth + 1}", "dense", before, units="classes")
    graph.add("loss", "softmax_cross_entropy", last, "labels")
    products = INPUTS * width + (depth - 1) * width * width + width * CLASSES
    layers = "-".join(map(str, [INPUTS, *[width] * depth, CLASSES]))
    return NetworkDefinition(
        name="mlp" if (width, depth) == (WIDTH, DEPTH) else f"mlp@{width}x{depth}",
        nodes=graph.nodes,
        dataset="digits28",
        facts=Facts(
            f"{layers}: nothing but matrix products; width= and depth= change it",
            "this project",
            (1, 28, 28),
            CLASSES,
            products + depth * width + CLASSES,
            products,
            "by formula: a product of each layer's inputs and units, and a bias for each unit; of 512x2 by "
            "hand: 401,408 + 262,144 + 5,120 products, and 1,034 units",
        ),
    )
