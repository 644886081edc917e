"""AlexNet for 224x224 images: the one tower of today's libraries, and the groups of the paper."""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition
from timetrial.optimizers import check_optimizer

_SAMPLE, _CLASSES = (3, 224, 224), 1000
# The paper's 0.01 is for batches of 128; with 16 a loss of 6.9 rises to 7.6 by it, and a judged batch is
# learned by heart two steps later, to 1e-5, where f32 tells little.
_OPTIMIZER = {"name": "sgd", "learning_rate": 0.00125, "momentum": 0.9, "weight_decay": 5e-4}


def _head(graph: Graph) -> list[dict[str, object]]:
    """Two layers of 4096 units behind dropout, and the classes."""
    graph.add("flat", "flatten")
    for number in (1, 2):
        graph.add(f"drop{number}", "dropout", rate=0.5)
        graph.add(f"fc{number}", "dense", units=4096)
        graph.add(f"relu{number + 5}", "relu")
    return graph.classifier("fc3")


def alexnet() -> NetworkDefinition:
    """conv11x11-64 by 4, max3, conv5x5-192, max3, conv3x3 of 384, 256 and 256, max3, twice 4096 units."""
    graph = Graph()
    graph.add("conv1", "conv2d", channels=64, kernel=11, stride=4, padding=2)
    graph.add("relu1", "relu")
    graph.add("pool1", "max_pool2d", kernel=3, stride=2)
    graph.add("conv2", "conv2d", channels=192, kernel=5, padding=2)
    graph.add("relu2", "relu")
    graph.add("pool2", "max_pool2d", kernel=3, stride=2)
    for number, channels in enumerate((384, 256, 256), start=3):
        graph.add(f"conv{number}", "conv2d", channels=channels, kernel=3, padding=1)
        graph.add(f"relu{number}", "relu")
    graph.add("pool5", "max_pool2d", kernel=3, stride=2)
    return NetworkDefinition(
        name="alexnet",
        nodes=_head(graph),
        dataset="synthetic-imagenet",
        batch_size=16,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=1,
        facts=Facts(
            "AlexNet in one tower, without groups and normalization",
            "Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014, as "
            "torchvision has it",
            _SAMPLE,
            _CLASSES,
            61_100_840,
            714_188_480,
            "torchvision documents 61,100,840 and 0.71 G; by hand: products 70,276,800 + 223,948,800 + "
            "112,140,288 + 149,520,384 + 99,680,256 + 37,748,736 + 16,777,216 + 4,096,000",
        ),
    )


def alexnet_groups() -> NetworkDefinition:
    """The paper's: 96, 256, 384, 384 and 256 filters, the second, fourth and fifth convolution in two groups,
    local response normalization behind the first two, its alpha not divided by the size of the window."""
    graph = Graph()
    normalization = {"size": 5, "alpha": 1e-4, "beta": 0.75, "k": 2.0, "alpha_over_size": False}
    graph.add("conv1", "conv2d", channels=96, kernel=11, stride=4, padding=2)
    graph.add("relu1", "relu")
    graph.add("norm1", "local_response_norm", **normalization)
    graph.add("pool1", "max_pool2d", kernel=3, stride=2)
    graph.add("conv2", "conv2d", channels=256, kernel=5, padding=2, groups=2)
    graph.add("relu2", "relu")
    graph.add("norm2", "local_response_norm", **normalization)
    graph.add("pool2", "max_pool2d", kernel=3, stride=2)
    for number, (channels, groups) in enumerate(((384, 1), (384, 2), (256, 2)), start=3):
        graph.add(f"conv{number}", "conv2d", channels=channels, kernel=3, padding=1, groups=groups)
        graph.add(f"relu{number}", "relu")
    graph.add("pool5", "max_pool2d", kernel=3, stride=2)
    return NetworkDefinition(
        name="alexnet-groups",
        nodes=_head(graph),
        dataset="synthetic-imagenet",
        batch_size=16,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=1,
        facts=Facts(
            "AlexNet as first published, in groups and with local response normalization",
            "Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural "
            "networks, NIPS 2012, section 3; Bahrampour et al., 2016, time it with and without groups and "
            "normalization",
            _SAMPLE,
            _CLASSES,
            60_965_224,
            724_406_816,
            "by hand: 34,944 + 307,456 + 885,120 + 663,936 + 442,624 + 37,752,832 + 16,781,312 + 4,097,000 "
            "weights and biases (the paper says 60 million); products 105,415,200 + 223,948,800 + "
            "149,520,384 + 112,140,288 + 74,760,192 + 58,621,952",
        ),
    )
