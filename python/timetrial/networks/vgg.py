"""VGG for 32x32 images: the paper's convolutions, one dense layer behind them.

After five poolings an image of 32x32 is one pixel, so that the paper's head (25,088 numbers into twice 4096
units) has nothing to read: the usual head of variants for CIFAR is the 512 channels into the classes.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition
from timetrial.optimizers import check_optimizer

PAPER = (
    "Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, ICLR 2015, "
    "table 1, {}; head of one dense layer"
)
NORMALIZED = (
    "; batch normalization behind every convolution: Liu and Deng, Very deep convolutional neural network "
    "based image classification using small training sample size, ACPR 2015"
)
_BLOCKS = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3)}  # convolutions in front of each pooling
_CHANNELS = (64, 128, 256, 512, 512)
_SAMPLE, _CLASSES = (3, 32, 32), 10
# At a rate of 0.02 the first losses of vgg16-32 rise to 7, and last places of f32 become parts in a thousand
# of the second: no two processes of one library agree on it then.
_OPTIMIZER = {"name": "sgd", "learning_rate": 0.005, "momentum": 0.9, "weight_decay": 5e-4}


def _vgg(depth: int, name: str, facts: Facts, *, normalized: bool) -> NetworkDefinition:
    graph = Graph()
    for block, (count, channels) in enumerate(zip(_BLOCKS[depth], _CHANNELS, strict=True), start=1):
        for number in range(1, count + 1):
            graph.add(f"conv{block}_{number}", "conv2d", channels=channels, kernel=3, padding=1)
            if normalized:
                graph.add(f"bn{block}_{number}", "batch_norm")
            graph.add(f"relu{block}_{number}", "relu")
        graph.add(f"pool{block}", "max_pool2d", kernel=2)
    graph.add("flat", "flatten")
    return NetworkDefinition(
        name=name,
        nodes=graph.classifier(),
        dataset="synthetic-cifar",
        batch_size=32,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=4,
        facts=facts,
    )


def vgg11_32() -> NetworkDefinition:
    """Configuration A, normalized: eight convolutions."""
    facts = Facts(
        "VGG-11 for 32x32 images, with batch normalization and one dense layer",
        PAPER.format("configuration A") + NORMALIZED,
        _SAMPLE,
        _CLASSES,
        9_231_114,
        152_769_536,
        "by hand: 9,220,480 weights and biases of convolutions, 5,504 of normalization, 5,130 of the head; "
        "products 1,769,472 + 18,874,368 + 18,874,368 + 37,748,736 + 18,874,368 + 37,748,736 + 2 x "
        "9,437,184 + 5,120. The paper's 133 M parameters are its head's",
    )
    return _vgg(11, "vgg11-32", facts, normalized=True)


def vgg16_32() -> NetworkDefinition:
    """Configuration D, normalized: thirteen convolutions."""
    facts = Facts(
        "VGG-16 for 32x32 images, with batch normalization and one dense layer",
        PAPER.format("configuration D") + NORMALIZED,
        _SAMPLE,
        _CLASSES,
        14_728_266,
        313_201_664,
        "by hand: 14,714,688 weights and biases of convolutions, 8,448 of normalization, 5,130 of the head: "
        "as variants for CIFAR with these layers count; products 313,196,544 + 5,120. The paper's 138 M "
        "parameters and 15.5 G are those of 224x224 images",
    )
    return _vgg(16, "vgg16-32", facts, normalized=True)


def vgg16_32_plain() -> NetworkDefinition:
    """Configuration D as the paper has it, without normalization: it hardly learns from these initial
    weights."""
    facts = Facts(
        "VGG-16 for 32x32 images without normalization, as published, with one dense layer",
        PAPER.format("configuration D"),
        _SAMPLE,
        _CLASSES,
        14_719_818,
        313_201_664,
        "by hand: as vgg16-32 without the 8,448 of normalization",
    )
    return _vgg(16, "vgg16-32-plain", facts, normalized=False)
