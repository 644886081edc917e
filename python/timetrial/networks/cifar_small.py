"""A small convolutional network for 3x32x32 images: padded 3x3 convolutions, both kinds of pooling."""

from __future__ import annotations

from timetrial.networks.definition import Facts, NetworkDefinition, layer


def cifar_small() -> NetworkDefinition:
    """conv3x3-32, max2, conv3x3-32, average 2, conv3x3-64, average 2, 64 rectified units, the classes."""
    return NetworkDefinition(
        name="cifar-small",
        nodes=[
            layer("conv1", "conv2d", channels=32, kernel=3, padding="same"),
            layer("relu1", "relu"),
            layer("pool1", "max_pool2d", kernel=2),
            layer("conv2", "conv2d", channels=32, kernel=3, padding="same"),
            layer("relu2", "relu"),
            layer("pool2", "avg_pool2d", kernel=2),
            layer("conv3", "conv2d", channels=64, kernel=3, padding="same"),
            layer("relu3", "relu"),
            layer("pool3", "avg_pool2d", kernel=2),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=64),
            layer("relu4", "relu"),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        dataset="synthetic-cifar",
        epochs=6,
        facts=Facts(
            "three padded 3x3 convolutions, both kinds of pooling, 64 units",
            "this project",
            (3, 32, 32),
            10,
            94_890,
            4_489_856,
            "by hand: 896 + 9,248 + 18,496 + 65,600 + 650 weights and biases; products 884,736 + 2,359,296 "
            "+ 1,179,648 + 65,536 + 640",
        ),
    )
