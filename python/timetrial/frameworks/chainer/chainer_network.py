"""The network in Chainer's links and functions: what computes each kind of layer, and each loss."""

import numpy as np
from timetrial_adapter import bias_name, one_hot, pair, weight_name


def make_chain(chainer, job):
    """The layers that have parameters, as links with their initial values."""
    chain = chainer.Chain()
    with chain.init_scope():
        for node in job.nodes:
            if not node.parameters:
                continue
            weight = np.array(job.parameters[weight_name(node)])
            bias = bias_name(node)
            given = {"nobias": bias is None, "initialW": weight}
            if bias is not None:
                given["initial_bias"] = np.array(job.parameters[bias])
            setattr(chain, node.name, LINKS[node.kind](chainer.links, node, weight.shape, given))
    return chain


def _convolution(links, node, shape, given):
    return links.Convolution2D(shape[1], shape[0], *_window(node), **given)


# Of the layers with parameters: functions of (chainer.links, node, shape of the weight, what else is given).
LINKS = {
    "dense": lambda links, _, shape, given: links.Linear(shape[1], shape[0], **given),
    "conv2d": _convolution,
}


def _window(node):
    return pair(node, "kernel"), pair(node, "stride"), pair(node, "padding")


def _linked(_, chain, node, x):
    return getattr(chain, node.name)(x)


def _max_pool2d(functions, _, node, x):
    return functions.max_pooling_2d(x, *_window(node), cover_all=False)


def _avg_pool2d(functions, _, node, x):
    return functions.average_pooling_2d(x, *_window(node))


# Functions of (chainer.functions, chain, node, the layer's inputs).
LAYERS = {
    **dict.fromkeys(LINKS, _linked),
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda functions, _chain, _node, x: functions.relu(x),
    "tanh": lambda functions, _chain, _node, x: functions.tanh(x),
    "sigmoid": lambda functions, _chain, _node, x: functions.sigmoid(x),
    "flatten": lambda functions, _chain, _node, x: functions.reshape(x, (len(x), -1)),
    "dropout": lambda _functions, _chain, _node, x, mask=None: x if mask is None else x * mask,
    "add": lambda functions, _chain, _node, *inputs: functions.add(*inputs),
    "concat": lambda functions, _chain, _node, *inputs: functions.concat(inputs, axis=1),
}


def _squared_error(functions, prediction, labels):
    return functions.mean_squared_error(prediction, one_hot(labels, prediction.shape[1]))


# Functions of (chainer.functions, prediction, labels).
LOSSES = {
    "softmax_cross_entropy": lambda functions, *given: functions.softmax_cross_entropy(*given),
    "squared_error": _squared_error,
}
