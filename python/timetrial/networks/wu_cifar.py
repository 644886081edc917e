"""The CIFAR-10 networks that frameworks' own tutorials train, each with its own settings.

Wu et al., IEEE Transactions on Services Computing, 2019. Theano's is not here: the study's repository does
not have it. What cannot be said in this project's layers is said in `differs`.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, Graph, NetworkDefinition, layer
from timetrial.optimizers import check_optimizer

SOURCE = "Wu et al., IEEE Transactions on Services Computing, 2019, default settings of {} on CIFAR-10"
_CLASSES = 10


def wu_tensorflow_cifar() -> NetworkDefinition:
    """conv5x5-64, max3, normalization across channels, conv5x5-64, normalization, max3, 384 and 192 units."""
    graph = Graph()
    normalization = {
        "size": 9,
        "alpha": 0.001,
        "beta": 0.75,
        "k": 1.0,
    }  # TensorFlow writes alpha as 0.001 / 9
    graph.add("conv1", "conv2d", channels=64, kernel=5, padding="same")
    graph.add("relu1", "relu")
    graph.add("pool1", "max_pool2d", kernel=3, stride=2, padding=1)
    graph.add("norm1", "local_response_norm", **normalization)
    graph.add("conv2", "conv2d", channels=64, kernel=5, padding="same")
    graph.add("relu2", "relu")
    graph.add("norm2", "local_response_norm", **normalization)
    graph.add("pool2", "max_pool2d", kernel=3, stride=2, padding=1)
    graph.add("flat", "flatten")
    for number, units in enumerate((384, 192), start=1):
        graph.add(f"fc{number}", "dense", units=units)
        graph.add(f"relu{number + 2}", "relu")
    return NetworkDefinition(
        name="wu-tensorflow-cifar",
        nodes=graph.classifier("fc3"),
        dataset="synthetic-cifar",
        batch_size=128,
        optimizer=check_optimizer({"name": "sgd", "learning_rate": 0.1}),
        epochs=6,
        facts=Facts(
            "TensorFlow's tutorial on CIFAR-10: two 5x5 convolutions with local response normalization",
            SOURCE.format("TensorFlow"),
            (3, 24, 24),
            _CLASSES,
            1_068_298,
            18_470_784,
            "by hand, for the tutorial's crops of 24x24: 4,864 + 102,464 + 885,120 + 73,920 + 1,930 weights "
            "and biases; products 2,764,800 + 14,745,600 + 884,736 + 73,728 + 1,920. On images of 32x32 the "
            "first dense layer alone has 1,573,248",
            "its pooling is padded at the upper left, the tutorial's at the lower right: the same network "
            "for mirrored images. The tutorial decays the weights of dense layers alone (0.004)",
        ),
    )


def wu_caffe_cifar() -> NetworkDefinition:
    """cifar10_quick: three padded 5x5 convolutions (32, 32, 64), max3 and average 3 twice, 64 units."""
    return NetworkDefinition(
        name="wu-caffe-cifar",
        nodes=[
            layer("conv1", "conv2d", channels=32, kernel=5, padding="same"),
            layer("pool1", "max_pool2d", kernel=3, stride=2, padding=1),
            layer("relu1", "relu"),
            layer("conv2", "conv2d", channels=32, kernel=5, padding="same"),
            layer("relu2", "relu"),
            layer("pool2", "avg_pool2d", kernel=3, stride=2, padding=1),
            layer("conv3", "conv2d", channels=64, kernel=5, padding="same"),
            layer("relu3", "relu"),
            layer("pool3", "avg_pool2d", kernel=3, stride=2, padding=1),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=64),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        dataset="synthetic-cifar",
        batch_size=100,
        optimizer=check_optimizer(
            {"name": "sgd", "learning_rate": 0.001, "momentum": 0.9, "weight_decay": 0.004}
        ),
        epochs=6,
        facts=Facts(
            "Caffe's cifar10_quick: three 5x5 convolutions, one maximum and two averages",
            SOURCE.format("Caffe"),
            (3, 32, 32),
            _CLASSES,
            145_578,
            12_354_176,
            "by hand: 2,432 + 25,632 + 51,264 + 65,600 + 650 weights and biases; products 2,457,600 + "
            "6,553,600 + 3,276,800 + 65,536 + 640",
            "Caffe's pooling rounds up and cuts its last windows off at the edge, by which it divides an "
            "average; here windows are padded at the upper left, and an average counts the zeros there",
        ),
    )


def wu_torch_cifar() -> NetworkDefinition:
    """conv5x5-16, tanh, max2, conv5x5-256, tanh, max2, 128 units, tanh; one image at a time."""
    return NetworkDefinition(
        name="wu-torch-cifar",
        nodes=[
            layer("conv1", "conv2d", channels=16, kernel=5),
            layer("tanh1", "tanh"),
            layer("pool1", "max_pool2d", kernel=2),
            layer("conv2", "conv2d", channels=256, kernel=5, groups=4),
            layer("tanh2", "tanh"),
            layer("pool2", "max_pool2d", kernel=2),
            layer("flat", "flatten"),
            layer("fc1", "dense", units=128),
            layer("tanh3", "tanh"),
            layer("fc2", "dense", units="classes"),
            layer("loss", "softmax_cross_entropy", inputs=["fc2", "labels"]),
        ],
        dataset="synthetic-cifar",
        batch_size=1,
        optimizer=check_optimizer({"name": "sgd", "learning_rate": 0.001}),
        epochs=1,
        facts=Facts(
            "Torch's demo on CIFAR-10: two 5x5 convolutions, the second in groups, tanh",
            SOURCE.format("Torch"),
            (3, 32, 32),
            _CLASSES,
            847_690,
            4_321_280,
            "by hand: 1,216 + 25,856 + 819,328 + 1,290 weights and biases; products 940,800 + 2,560,000 + "
            "819,200 + 1,280. Torch's own first layer has a third of 1,200 weights and of 940,800 products",
            "Torch draws at random which maps a convolution reads, one of three in the first and four of "
            "sixteen in the second; here the first reads all three, and the second has four groups: as many "
            "connections, in order. Its images are YUV, normalized",
        ),
    )
