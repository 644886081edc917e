"""A small convolutional auto-encoder: what it predicts is held against the images themselves."""

from __future__ import annotations

from timetrial.networks.definition import Facts, NetworkDefinition, layer
from timetrial.optimizers import check_optimizer


def autoencoder_small() -> NetworkDefinition:
    """Two convolutions that halve, a transposed one and an upsampling that double, sigmoid."""
    return NetworkDefinition(
        name="autoencoder-small",
        nodes=[
            layer("conv1", "conv2d", channels=16, kernel=3, stride=2, padding=1),
            layer("relu1", "relu"),
            layer("conv2", "conv2d", channels=32, kernel=3, stride=2, padding=1),
            layer("relu2", "relu"),
            layer("up1", "conv_transpose2d", channels=16, kernel=2, stride=2),
            layer("relu3", "relu"),
            layer("up2", "upsample2d", scale=2),
            layer("conv3", "conv2d", channels=1, kernel=3, padding="same"),
            layer("pixels", "sigmoid"),
            layer("flat", "flatten"),
            layer("loss", "mean_squared_error", inputs=["flat", "images"]),
        ],
        dataset="digits28",
        optimizer=check_optimizer({"name": "adam", "learning_rate": 1e-3}),
        facts=Facts(
            "a convolutional auto-encoder: 28x28 to 7x7x32 and back, by transposed convolution and "
            "upsampling",
            "this project; both ways up after Odena, Dumoulin and Olah, Deconvolution and checkerboard "
            "artifacts, Distill, 2016",
            (1, 28, 28),
            0,
            7_009,
            467_264,
            "by hand: 160 + 4,640 + 2,064 + 145 weights and biases; products 28,224 + 225,792 + 100,352 + "
            "112,896",
        ),
    )
