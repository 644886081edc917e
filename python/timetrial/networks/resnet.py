"""Residual networks: ResNet-20 for 32x32 images, ResNet-18 and ResNet-50 for 224x224.

He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016. Convolutions have no bias:
the normalization behind each has one.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition
from timetrial.optimizers import check_optimizer

_PAPER = "He, Zhang, Ren and Sun, Deep residual learning for image recognition, CVPR 2016, {}"
_OPTIMIZER = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4}


def _convolution(graph: Graph, name: str, source: str, channels: int, kernel: int, stride: int = 1) -> str:
    """With its normalization; gives the name of that."""
    padding = kernel // 2
    graph.add(
        f"{name}_conv",
        "conv2d",
        source,
        channels=channels,
        kernel=kernel,
        stride=stride,
        padding=padding,
        bias=False,
    )
    return graph.add(f"{name}_bn", "batch_norm")


def _basic(graph: Graph, name: str, source: str, channels: int, stride: int) -> str:
    """Two 3x3 convolutions; gives the name of what comes out of them."""
    _convolution(graph, f"{name}a", source, channels, 3, stride)
    relu = graph.add(f"{name}a_relu", "relu")
    return _convolution(graph, f"{name}b", relu, channels, 3)


def _bottleneck(graph: Graph, name: str, source: str, channels: int, stride: int) -> str:
    """1x1 to fewer channels, 3x3 (which steps), 1x1 to four times as many."""
    _convolution(graph, f"{name}a", source, channels, 1)
    relu = graph.add(f"{name}a_relu", "relu")
    _convolution(graph, f"{name}b", relu, channels, 3, stride)
    relu = graph.add(f"{name}b_relu", "relu")
    return _convolution(graph, f"{name}c", relu, 4 * channels, 1)


def _stages(
    graph: Graph, source: str, blocks: tuple[int, ...], channels: int, *, bottleneck: bool = False
) -> list[dict[str, object]]:
    """Stages of residual blocks, each with twice the channels and half the size of the one before, then the
    mean of every channel and the classes. Where a block changes shape, its shortcut is a 1x1 convolution."""
    block, widening = (_bottleneck, 4) if bottleneck else (_basic, 1)
    before = channels
    for stage, count in enumerate(blocks, start=1):
        for number in range(1, count + 1):
            name = f"s{stage}b{number}"
            stride = 2 if number == 1 and stage > 1 else 1
            inner = block(graph, name, source, channels, stride)
            shortcut = source
            if stride > 1 or before != widening * channels:
                shortcut = _convolution(graph, f"{name}_short", source, widening * channels, 1, stride)
            graph.add(f"{name}_add", "add", inner, shortcut)
            source = graph.add(f"{name}_relu", "relu")
            before = widening * channels
        channels *= 2
    graph.add("mean", "global_avg_pool2d")
    return graph.classifier()


def resnet20() -> NetworkDefinition:
    """Three stages of three blocks with 16, 32 and 64 channels. The two shortcuts that change shape are 1x1
    convolutions: option B of the paper, whose figures for CIFAR-10 are of option A, filled up with zeros."""
    graph = Graph()
    _convolution(graph, "stem", "images", 16, 3)
    relu = graph.add("stem_relu", "relu")
    return NetworkDefinition(
        name="resnet20",
        nodes=_stages(graph, relu, (3, 3, 3), 16),
        dataset="synthetic-cifar",
        batch_size=128,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=6,
        facts=Facts(
            "ResNet-20 for 32x32 images, shortcuts of option B",
            _PAPER.format("section 4.2"),
            (3, 32, 32),
            10,
            272_474,
            40_813_184,
            "by hand: 269,722 parameters and 40,551,040 products of option A (the paper says 0.27 M), and "
            "for option B 2,560 weights, 192 of normalization and 262,144 products more",
            "the paper's networks for CIFAR-10 have shortcuts of option A: no layer here fills up with zeros",
        ),
    )


def _stem(graph: Graph) -> str:
    _convolution(graph, "stem", "images", 64, 7, 2)
    graph.add("stem_relu", "relu")
    return graph.add("stem_pool", "max_pool2d", kernel=3, stride=2, padding=1)


def resnet18() -> NetworkDefinition:
    """Four stages of two blocks with 64 to 512 channels."""
    graph = Graph()
    return NetworkDefinition(
        name="resnet18",
        nodes=_stages(graph, _stem(graph), (2, 2, 2, 2), 64),
        dataset="synthetic-imagenet",
        batch_size=8,
        optimizer=check_optimizer({**_OPTIMIZER, "learning_rate": 0.02}),
        epochs=1,
        facts=Facts(
            "ResNet-18 for 224x224 images",
            _PAPER.format("table 1, shortcuts of option B"),
            (3, 224, 224),
            1000,
            11_689_512,
            1_814_073_344,
            "torchvision documents 11,689,512 and 1.81 G; the paper's 1.8e9 are the same products",
        ),
    )


def resnet50() -> NetworkDefinition:
    """Four stages of 3, 4, 6 and 3 bottlenecks. The 3x3 convolution of a block steps, as in today's libraries
    ("version 1.5"); in the paper the 1x1 in front of it does."""
    graph = Graph()
    return NetworkDefinition(
        name="resnet50",
        nodes=_stages(graph, _stem(graph), (3, 4, 6, 3), 64, bottleneck=True),
        dataset="synthetic-imagenet",
        batch_size=4,
        optimizer=check_optimizer({**_OPTIMIZER, "learning_rate": 0.01}),
        epochs=1,
        facts=Facts(
            "ResNet-50 for 224x224 images, version 1.5",
            _PAPER.format("table 1; a block steps in its 3x3 convolution, as in torchvision"),
            (3, 224, 224),
            1000,
            25_557_032,
            4_089_184_256,
            "torchvision documents 25,557,032 and 4.09 G; the paper's 3.8e9 are of blocks that step in "
            "their first convolution, with as many parameters",
        ),
    )
