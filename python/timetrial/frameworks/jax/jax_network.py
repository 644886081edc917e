"""The network in JAX's functions: what makes each kind of layer, and each loss."""

import numpy as np
from timetrial_adapter import bias_name, pair, weight_name


def _dense(_, node, weights, x):
    y = x @ weights[weight_name(node)].T
    return y + weights[bias_name(node)] if bias_name(node) else y


def _conv2d(jax, node, weights, x):
    weight = weights[weight_name(node)]
    y = jax.lax.conv_general_dilated(x, weight, pair(node, "stride"), _padding(node))
    return y + weights[bias_name(node)][:, None, None] if bias_name(node) else y


def _max_pool2d(jax, node, _, x):
    return _window(jax, node, x, -np.inf, jax.lax.max)


def _avg_pool2d(jax, node, _, x):
    return _window(jax, node, x, 0.0, jax.lax.add) / np.prod(pair(node, "kernel"))  # padded zeros count


def _window(jax, node, x, start, combine):
    kernel, stride = (1, 1, *pair(node, "kernel")), (1, 1, *pair(node, "stride"))
    return jax.lax.reduce_window(x, start, combine, kernel, stride, [(0, 0), (0, 0), *_padding(node)])


def _padding(node):
    return [(size, size) for size in pair(node, "padding")]


# Functions of (jax, node, weights by the job's names, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda jax, _node, _weights, x: jax.nn.relu(x),
    "tanh": lambda jax, _node, _weights, x: jax.numpy.tanh(x),
    "sigmoid": lambda jax, _node, _weights, x: jax.nn.sigmoid(x),
    "flatten": lambda _jax, _node, _weights, x: x.reshape(x.shape[0], -1),
    "dropout": lambda _jax, _node, _weights, x, mask=None: x if mask is None else x * mask,
    "add": lambda _jax, _node, _weights, x, *more: sum(more, x),
    "concat": lambda jax, _node, _weights, *inputs: jax.numpy.concatenate(inputs, axis=1),
}


def _softmax_cross_entropy(_, optax, prediction, labels):
    return optax.softmax_cross_entropy_with_integer_labels(prediction, labels).mean()


def _squared_error(jax, optax, prediction, labels):
    return optax.squared_error(prediction, jax.nn.one_hot(labels, prediction.shape[1])).mean()


def _mean_squared_error(_, optax, prediction, target):
    return optax.squared_error(prediction, target.reshape(prediction.shape)).mean()


# Functions of (jax, optax, prediction, labels or the numbers wanted): the mean of the batch.
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}
