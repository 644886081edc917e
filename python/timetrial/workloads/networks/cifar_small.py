"""A small convolutional network for 3x32x32 images: padded 3x3 convolutions, both kinds of pooling."""

from __future__ import annotations

from timetrial.workloads.definition import NetworkDefinition, layer


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
    )
