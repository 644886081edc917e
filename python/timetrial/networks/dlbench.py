"""The image networks of a published comparison of frameworks.

Elshawi, Wahab, Barnawi and Sakr, "DLBench: a comprehensive experimental evaluation of deep learning
frameworks", Cluster Computing 24(3), 2021: the networks as its Keras notebooks write them, its batch size and
its learning rate. The study trains for many epochs with momentum 0.5; 0.9 needs only a few.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition, layer
from timetrial.optimizers import check_optimizer

SOURCE = "Elshawi, Wahab, Barnawi and Sakr, DLBench, Cluster Computing 24(3), 2021"
_OPTIMIZER = {"name": "sgd", "learning_rate": 0.01, "momentum": 0.9}
_BATCH = 128


def dlbench_mnist() -> NetworkDefinition:
    """conv3x3-32, conv3x3-64, max2, dropout, 128 units, dropout."""
    return NetworkDefinition(
        name="dlbench-mnist",
        nodes=[
            layer("conv1", "conv2d", channels=32, kernel=3),
            layer("relu1", "relu"),
            layer("conv2", "conv2d", channels=64, kernel=3),
            layer("relu2", "relu"),
            layer("pool1", "max_pool2d", kernel=2),
            layer("drop1", "dropout", rate=0.25),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=128),
            layer("relu3", "relu"),
            layer("drop2", "dropout", rate=0.5),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        batch_size=_BATCH,
        optimizer=check_optimizer(_OPTIMIZER),
        facts=Facts(
            "two 3x3 convolutions and 128 units, with dropout",
            SOURCE,
            (1, 28, 28),
            10,
            1_199_882,
            11_992_448,
            "by hand: 320 + 18,496 + 1,179,776 + 1,290 weights and biases; products 194,688 + 10,616,832 + "
            "1,179,648 + 1,280",
        ),
    )


def dlbench_cifar() -> NetworkDefinition:
    """Twice two 3x3 convolutions and max2 (32 filters, then 64), 512 rectified units; without its dropout."""
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
        batch_size=_BATCH,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=6,
        facts=Facts(
            "four 3x3 convolutions and 512 units, without the study's dropout",
            SOURCE,
            (3, 32, 32),
            10,
            1_250_858,
            20_741_120,
            "by hand: 896 + 9,248 + 18,496 + 36,928 + 1,180,160 + 5,130 weights and biases; products "
            "884,736 + 8,294,400 + 4,147,200 + 6,230,016 + 1,179,648 + 5,120 (the study's MXNet and Theano "
            "pad nothing and have 0.89 M and 15.2 M)",
        ),
    )


def dlbench_cifar100() -> NetworkDefinition:
    """Three times two 3x3 convolutions, max2 and dropout (128, 256, 512 filters), 1024 units."""
    graph = Graph()
    for block, (channels, rate) in enumerate(((128, 0.1), (256, 0.25), (512, 0.5)), start=1):
        graph.add(f"conv{block}a", "conv2d", channels=channels, kernel=3, padding="same")
        graph.add(f"relu{block}a", "relu")
        graph.add(f"conv{block}b", "conv2d", channels=channels, kernel=3)
        graph.add(f"relu{block}b", "relu")
        graph.add(f"pool{block}", "max_pool2d", kernel=2)
        graph.add(f"drop{block}", "dropout", rate=rate)
    graph.add("flat", "flatten")
    graph.add("fc1", "dense", units=1024)
    graph.add("relu4", "relu")
    graph.add("drop4", "dropout", rate=0.5)
    return NetworkDefinition(
        name="dlbench-cifar100",
        nodes=graph.classifier("fc2"),
        dataset="synthetic-cifar",
        batch_size=_BATCH,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=6,
        facts=Facts(
            "six 3x3 convolutions of up to 512 filters, with dropout",
            SOURCE,
            (3, 32, 32),
            100,
            6_777_060,
            384_700_416,
            "by hand, for 100 classes: convolutions of 3,584 + 147,584 + 295,168 + 590,080 + 1,180,160 + "
            "2,359,808 weights and biases, dense layers of 2,098,176 + 102,500; products 3,538,944 + "
            "132,710,400 + 66,355,200 + 99,680,256 + 42,467,328 + 37,748,736 + 2,097,152 + 102,400",
        ),
    )


_SVHN_CHANNELS = (48, 64, 128, 160, 192, 192, 192, 192)


def dlbench_svhn_alternating() -> NetworkDefinition:
    """Eight 5x5 convolutions; every second pooling keeps the size, as in the study's Keras and MXNet."""
    return _svhn(
        "alternating",
        "every second pooling has stride 1",
        193_263_616,
        "by hand: products 3,686,400 + 19,660,800 + 52,428,800 + 32,768,000 + 49,152,000 + 2 x 14,745,600 + "
        "3,686,400 + 2,359,296 + 30,720: the study's 193 M",
        parameters=6_726_602,
        differs="the poolings that keep the size have windows of 3x3 padded all around, the study's of 2x2 "
        "padded at the lower right",
    )


def dlbench_svhn_halving() -> NetworkDefinition:
    """Eight 5x5 convolutions; every pooling halves, as in the study's TensorFlow, Chainer, Theano and
    PyTorch. Behind the fifth nothing is left to pool."""
    return _svhn(
        "halving",
        "every pooling has stride 2",
        51_103_744,
        "by hand: products 3,686,400 + 19,660,800 + 13,107,200 + 8,192,000 + 3,072,000 + 3 x 921,600 + "
        "589,824 + 30,720: the study's 51 M",
        parameters=4_957_130,
    )


def _svhn(
    reading: str, words: str, products: int, counted: str, *, parameters: int, differs: str = ""
) -> NetworkDefinition:
    graph, size = Graph(), 32
    for number, channels in enumerate(_SVHN_CHANNELS, start=1):
        graph.add(f"conv{number}", "conv2d", channels=channels, kernel=5, padding="same")
        graph.add(f"bn{number}", "batch_norm")
        graph.add(f"relu{number}", "relu")
        if number % 2 == 0 and reading == "alternating":
            graph.add(f"pool{number}", "max_pool2d", kernel=3, stride=1, padding=1)
        elif size > 1:
            graph.add(f"pool{number}", "max_pool2d", kernel=2)
            size //= 2
        graph.add(f"drop{number}", "dropout", rate=0.2)
    graph.add("flat", "flatten")
    graph.add("fc1", "dense", units=3072)
    graph.add("relu9", "relu")
    graph.add("drop9", "dropout", rate=0.5)
    return NetworkDefinition(
        name=f"dlbench-svhn-{reading}",
        nodes=graph.classifier("fc2"),
        dataset="synthetic-cifar",
        batch_size=_BATCH,
        optimizer=check_optimizer(_OPTIMIZER),
        epochs=6,
        facts=Facts(
            f"eight 5x5 convolutions with batch normalization and dropout; {words}",
            f"{SOURCE}: one of its two readings of SVHN's network",
            (3, 32, 32),
            10,
            parameters,
            products,
            f"{counted}; weights and biases of the convolutions with their normalization 4,333,504, the "
            "rest of the dense layers; the study gives none",
            differs,
        ),
    )
