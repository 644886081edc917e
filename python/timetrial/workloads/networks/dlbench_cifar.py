"""The CIFAR-10 network of a published comparison of frameworks, without its dropout.

Elshawi, Wahab, Barnawi and Sakr, "DLBench: a comprehensive experimental evaluation of deep learning
frameworks", Cluster Computing 24(3), 2021: the network, its batch size and its learning rate. The study
trained a hundred epochs with momentum 0.5; 0.9 needs only a few.
"""

from __future__ import annotations

from timetrial.workloads.definition import DEFAULT_OPTIMIZER, NetworkDefinition, layer


def dlbench_cifar() -> NetworkDefinition:
    """Twice two 3x3 convolutions and max2 (32 filters, then 64), 512 rectified units, the classes."""
    return NetworkDefinition(
        name="dlbench-cifar",
        nodes=[
            layer("conv1", "conv2d", channels=32, kernel=3, padding="same"),
            layer("relu1", "relu"),
            layer("conv2", "conv2d", channels=32, kernel=3),
            layer("relu2", "relu"),
            layer("pool1", "max_pool2d", kernel=2),
            layer("conv3", "conv2d", channels=64, kernel=3, padding="same"),
            layer("relu3", "relu"),
            layer("conv4", "conv2d", channels=64, kernel=3),
            layer("relu4", "relu"),
            layer("pool2", "max_pool2d", kernel=2),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=512),
            layer("relu5", "relu"),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        dataset="synthetic-cifar",
        batch_size=128,
        optimizer={**DEFAULT_OPTIMIZER, "learning_rate": 0.01},
        epochs=6,
    )
