"""The MNIST networks that four frameworks' own tutorials train, each with its own settings.

Wu, Liu, Pu, Cao, Sahin, Wei and Zhang, "A comparative measurement study of deep learning as a service
framework", IEEE Transactions on Services Computing, 2019: "default setting" there is a tutorial's network,
batch size and optimizer. They are four different networks, from 2.3 to 13.9 million multiply-accumulates,
which is why the study's times cannot be compared; here each runs on every stack.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition, layer
from timetrial.optimizers import check_optimizer

SOURCE = "Wu et al., IEEE Transactions on Services Computing, 2019, default settings of {} on MNIST"
_SAMPLE, _CLASSES = (1, 28, 28), 10


def _facts(framework: str, words: str, parameters: int, products: int, counted: str) -> Facts:
    return Facts(words, SOURCE.format(framework), _SAMPLE, _CLASSES, parameters, products, counted)


def wu_tensorflow_mnist() -> NetworkDefinition:
    """conv5x5-32, max2, conv5x5-64, max2, 1024 units, half of them dropped; rectified."""
    graph = Graph()
    for number, channels in enumerate((32, 64), start=1):
        graph.add(f"conv{number}", "conv2d", channels=channels, kernel=5, padding="same")
        graph.add(f"relu{number}", "relu")
        graph.add(f"pool{number}", "max_pool2d", kernel=2)
    graph.add("flat", "flatten")
    graph.add("fc1", "dense", units=1024)
    graph.add("relu3", "relu")
    graph.add("drop", "dropout", rate=0.5)
    return NetworkDefinition(
        name="wu-tensorflow-mnist",
        nodes=graph.classifier("fc2"),
        batch_size=50,
        optimizer=check_optimizer({"name": "adam", "learning_rate": 1e-4}),
        facts=_facts(
            "TensorFlow",
            "TensorFlow's tutorial on MNIST: two padded 5x5 convolutions, 1024 units, dropout",
            3_274_634,
            13_883_904,
            "by hand: 832 + 51,264 + 3,212,288 + 10,250 weights and biases; products 627,200 + 10,035,200 + "
            "3,211,264 + 10,240",
        ),
    )


def wu_caffe_mnist() -> NetworkDefinition:
    """conv5x5-20, max2, conv5x5-50, max2, 500 rectified units. Its learning rate falls in the study, by the
    power 3/4 of the step's number; here it stays."""
    return NetworkDefinition(
        name="wu-caffe-mnist",
        nodes=[
            layer("conv1", "conv2d", channels=20, kernel=5),
            layer("pool1", "max_pool2d", kernel=2),
            layer("conv2", "conv2d", channels=50, kernel=5),
            layer("pool2", "max_pool2d", kernel=2),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=500),
            layer("relu1", "relu"),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        batch_size=64,
        optimizer=check_optimizer(
            {"name": "sgd", "learning_rate": 0.01, "momentum": 0.9, "weight_decay": 5e-4}
        ),
        facts=_facts(
            "Caffe",
            "Caffe's LeNet: the layers of lenet5, with its own optimizer",
            431_080,
            2_293_000,
            "by hand: 520 + 25,050 + 400,500 + 5,010 weights and biases; products 288,000 + 1,600,000 + "
            "400,000 + 5,000",
        ),
    )


def wu_torch_mnist() -> NetworkDefinition:
    """conv5x5-32, tanh, max3, conv5x5-64, tanh, max2, 200 units, tanh. Torch reads MNIST as images of 32x32
    with an empty edge of two pixels: here the first convolution pads by two, which is the same."""
    return NetworkDefinition(
        name="wu-torch-mnist",
        nodes=[
            layer("conv1", "conv2d", channels=32, kernel=5, padding=2),
            layer("tanh1", "tanh"),
            layer("pool1", "max_pool2d", kernel=3, padding=1),
            layer("conv2", "conv2d", channels=64, kernel=5),
            layer("tanh2", "tanh"),
            layer("pool2", "max_pool2d", kernel=2),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=200),
            layer("tanh3", "tanh"),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        batch_size=10,
        optimizer=check_optimizer({"name": "sgd", "learning_rate": 0.05}),
        facts=_facts(
            "Torch",
            "Torch's demo on MNIST: two 5x5 convolutions, pooling by 3 and by 2, tanh",
            169_506,
            2_587_600,
            "by hand: 832 + 51,264 + 115,400 + 2,010 weights and biases; products 627,200 + 1,843,200 + "
            "115,200 + 2,000",
        ),
    )


def wu_theano_mnist() -> NetworkDefinition:
    """conv5x5-20, max2, tanh, conv5x5-50, max2, tanh, 500 units, tanh. Theano adds a convolution's bias
    behind the pooling, which is the same: the largest of a window does not change place."""
    return NetworkDefinition(
        name="wu-theano-mnist",
        nodes=[
            layer("conv1", "conv2d", channels=20, kernel=5),
            layer("pool1", "max_pool2d", kernel=2),
            layer("tanh1", "tanh"),
            layer("conv2", "conv2d", channels=50, kernel=5),
            layer("pool2", "max_pool2d", kernel=2),
            layer("tanh2", "tanh"),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=500),
            layer("tanh3", "tanh"),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        batch_size=500,
        optimizer=check_optimizer({"name": "sgd", "learning_rate": 0.1}),
        facts=_facts(
            "Theano",
            "Theano's tutorial on LeNet: tanh behind the pooling, batches of 500",
            431_080,
            2_293_000,
            "by hand: as wu-caffe-mnist",
        ),
    )
