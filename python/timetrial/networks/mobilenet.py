"""MobileNet v2: inverted residuals with depthwise convolutions.

Sandler, Howard, Zhu, Zhmoginov and Chen, "MobileNetV2: inverted residuals and linear bottlenecks", CVPR 2018,
table 2. Convolutions have no bias: the normalization behind each has one.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition
from timetrial.optimizers import check_optimizer

_PAPER = "Sandler, Howard, Zhu, Zhmoginov and Chen, MobileNetV2, CVPR 2018, table 2"
# Of each group of blocks: widening, channels, how many, and by how much the first one steps.
_GROUPS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_DROP = 0.2
_OPTIMIZER = {"name": "sgd", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 4e-5}


def _convolution(
    graph: Graph, name: str, source: str, channels: int, kernel: int, stride: int = 1, groups: int = 1
) -> str:
    graph.add(
        name,
        "conv2d",
        source,
        channels=channels,
        kernel=kernel,
        stride=stride,
        padding=kernel // 2,
        groups=groups,
        bias=False,
    )
    return graph.add(f"{name}_bn", "batch_norm")


def _rectified(graph: Graph, name: str, *, source: str, channels: int, kernel: int, **more: int) -> str:
    _convolution(graph, name, source, channels, kernel, **more)
    return graph.add(f"{name}_relu", "relu6")


def _block(
    graph: Graph, name: str, source: str, before: int, channels: int, widening: int, stride: int
) -> str:
    """1x1 to more channels, 3x3 on each channel alone, 1x1 to fewer; added to what went in, where shapes
    agree."""
    wide, inner = before * widening, source
    if widening > 1:
        inner = _rectified(graph, f"{name}_widen", source=source, channels=wide, kernel=1)
    inner = _rectified(
        graph, f"{name}_depth", source=inner, channels=wide, kernel=3, stride=stride, groups=wide
    )
    out = _convolution(graph, f"{name}_narrow", inner, channels, 1)
    if stride == 1 and before == channels:
        out = graph.add(f"{name}_add", "add", source, out)
    return out


def _nodes(strides: tuple[int, ...]) -> list[dict[str, object]]:
    """`strides`: of the first convolution, then of each group's first block."""
    graph = Graph()
    source = _rectified(graph, "stem", source="images", channels=32, kernel=3, stride=strides[0])
    before, number = 32, 0
    for (widening, channels, count, _), stride in zip(_GROUPS, strides[1:], strict=True):
        for place in range(count):
            number += 1
            source = _block(
                graph, f"b{number}", source, before, channels, widening, stride if place == 0 else 1
            )
            before = channels
    _rectified(graph, "last", source=source, channels=1280, kernel=1)
    graph.add("mean", "global_avg_pool2d")
    graph.add("drop", "dropout", rate=_DROP)
    return graph.classifier()


def mobilenet_v2() -> NetworkDefinition:
    """For 224x224 images, width 1."""
    return NetworkDefinition(
        name="mobilenet-v2",
        nodes=_nodes((2, *(stride for *_, stride in _GROUPS))),
        dataset="synthetic-imagenet",
        batch_size=8,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=1,
        facts=Facts(
            "MobileNet v2 for 224x224 images, width 1",
            _PAPER,
            (3, 224, 224),
            1000,
            3_504_872,
            300_774_272,
            "torchvision documents 3,504,872 and 0.30 G; the paper says 3.4 M and 300 M",
        ),
    )


def mobilenet_v2_32() -> NetworkDefinition:
    """For 32x32 images: as variants for CIFAR, the first convolution and the first group that halves keep the
    size, so that 4x4 pixels are left at the end."""
    return NetworkDefinition(
        name="mobilenet-v2-32",
        nodes=_nodes((1, 1, 1, 2, 2, 1, 2, 1)),
        dataset="synthetic-cifar",
        batch_size=64,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=6,
        facts=Facts(
            "MobileNet v2 for 32x32 images, width 1: stem and second group keep the size",
            f"{_PAPER}; strides of variants for CIFAR-10",
            (3, 32, 32),
            10,
            2_236_682,
            87_976_448,
            "by hand: 2,223,872 without the head, as for 224x224, and 12,810 of the head. Variants whose "
            "blocks without a step have a 1x1 convolution for every shortcut that changes channels have "
            "2.30 M",
        ),
    )
