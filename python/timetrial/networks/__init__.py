"""Networks by name, from a .toml file, or from a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable

from timetrial.errors import OWN_STEP, InputError, nearest
from timetrial.networks.alexnet import alexnet, alexnet_groups
from timetrial.networks.autoencoder import autoencoder_small
from timetrial.networks.cifar_small import cifar_small
from timetrial.networks.definition import NetworkDefinition
from timetrial.networks.dlbench import (
    dlbench_cifar,
    dlbench_cifar100,
    dlbench_mnist,
    dlbench_svhn_alternating,
    dlbench_svhn_halving,
)
from timetrial.networks.lenet5 import lenet5
from timetrial.networks.mlp import mlp
from timetrial.networks.mobilenet import mobilenet_v2, mobilenet_v2_32
from timetrial.networks.own import network_from_function, network_from_toml
from timetrial.networks.resnet import resnet18, resnet20, resnet50
from timetrial.networks.sequences import (
    conv_lstm,
    gru_translation,
    gru_vowels,
    lstm_bahrampour,
    lstm_imdb,
    lstm_lm,
    lstm_lm_carried,
    lstm_lm_tied,
    lstm_vowels,
)
from timetrial.networks.sized import sized_network
from timetrial.networks.stacked import stacked
from timetrial.networks.vgg import vgg11_32, vgg16_32, vgg16_32_plain
from timetrial.networks.wu_cifar import wu_caffe_cifar, wu_tensorflow_cifar, wu_torch_cifar
from timetrial.networks.wu_mnist import wu_caffe_mnist, wu_tensorflow_mnist, wu_theano_mnist, wu_torch_mnist

NETWORKS: dict[str, Callable[[], NetworkDefinition]] = {
    "mlp": mlp,
    "lenet5": lenet5,
    "cifar-small": cifar_small,
    "wu-tensorflow-mnist": wu_tensorflow_mnist,
    "wu-caffe-mnist": wu_caffe_mnist,
    "wu-torch-mnist": wu_torch_mnist,
    "wu-theano-mnist": wu_theano_mnist,
    "wu-tensorflow-cifar": wu_tensorflow_cifar,
    "wu-caffe-cifar": wu_caffe_cifar,
    "wu-torch-cifar": wu_torch_cifar,
    "dlbench-mnist": dlbench_mnist,
    "dlbench-cifar": dlbench_cifar,
    "dlbench-cifar100": dlbench_cifar100,
    "dlbench-svhn-alternating": dlbench_svhn_alternating,
    "dlbench-svhn-halving": dlbench_svhn_halving,
    "alexnet": alexnet,
    "alexnet-groups": alexnet_groups,
    "vgg11-32": vgg11_32,
    "vgg16-32": vgg16_32,
    "vgg16-32-plain": vgg16_32_plain,
    "resnet20": resnet20,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet-v2-32": mobilenet_v2_32,
    "mobilenet-v2": mobilenet_v2,
    "autoencoder-small": autoencoder_small,
    **stacked(),
    "lstm-bahrampour": lstm_bahrampour,
    "lstm-imdb": lstm_imdb,
    "lstm-lm": lstm_lm,
    "lstm-lm-carried": lstm_lm_carried,
    "lstm-lm-tied": lstm_lm_tied,
    "conv-lstm": conv_lstm,
    "gru-translation": gru_translation,
    "lstm-vowels": lstm_vowels,
    "gru-vowels": gru_vowels,
}


def load_network(source: str) -> NetworkDefinition:
    """The network of a name (mlp, mlp@256x3), of a path to a .toml file, or of "package.module:function".

    Layer kinds, attributes and shapes are checked later, by core.Network, when the dataset is known.
    """
    if source in NETWORKS:
        return NETWORKS[source]()
    chosen = sized_network(source)
    if chosen is not None:
        return chosen
    if source.endswith(".toml"):
        return network_from_toml(source)
    if ":" in source:
        return network_from_function(source)
    raise InputError(
        f"There is no network '{source}'.{nearest(source, NETWORKS)} "
        'Your own: a path to a .toml file, or "package.module:function".' + OWN_STEP
    )
