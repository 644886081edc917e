"""The network in JAX's functions: what makes each kind of layer, and each loss."""

import jax_sequences
import numpy as np
from timetrial_adapter import bias_name, borders, pair, response_alpha, weight_name

_LAYOUTS = ("NCHW", "OIHW", "NCHW")


def _dense(_, node, values, x):
    y = x @ values[weight_name(node)].T
    return y + values[bias_name(node)] if bias_name(node) else y


def _conv2d(jax, node, values, x):
    weight, groups = values[weight_name(node)], node.attributes["groups"]
    given = {"rhs_dilation": pair(node, "dilation"), "feature_group_count": groups}
    y = jax.lax.conv_general_dilated(x, weight, pair(node, "stride"), borders(node), **given)
    return _biased(node, values, y)


def _conv_transpose2d(jax, node, values, x):
    """Padding is that of the images with stride - 1 zeros between their places."""
    around = zip(pair(node, "kernel"), pair(node, "padding"), pair(node, "output_padding"))
    padding = [(kernel - 1 - border, kernel - 1 - border + more) for kernel, border, more in around]
    given = {"dimension_numbers": _LAYOUTS, "transpose_kernel": True}
    y = jax.lax.conv_transpose(x, values[weight_name(node)], pair(node, "stride"), padding, **given)
    return _biased(node, values, y)


def _biased(node, values, y):
    return y + values[bias_name(node)][:, None, None] if bias_name(node) else y


def _max_pool2d(jax, node, _, x):
    return _window(jax, node, x, -np.inf, jax.lax.max)


def _avg_pool2d(jax, node, _, x):
    return _window(jax, node, x, 0.0, jax.lax.add) / np.prod(pair(node, "kernel"))  # padded zeros count


def _window(jax, node, x, start, combine):
    kernel, stride = (1, 1, *pair(node, "kernel")), (1, 1, *pair(node, "stride"))
    return jax.lax.reduce_window(x, start, combine, kernel, stride, [(0, 0), (0, 0), *borders(node)])


def _upsample2d(jax, node, _, x):
    down, right = pair(node, "scale")
    return jax.numpy.repeat(jax.numpy.repeat(x, down, axis=2), right, axis=3)


def _batch_norm(jax, node, values, x):
    """The variance as the mean of squares less the square of the mean, as jax.nn.standardize and flax have
    it: one pass over the images."""
    names = ["{}.{}".format(node.name, one) for one in ("running_mean", "running_var")]
    kept = [values[name] for name in names]
    axes = (0, *range(2, len(node.shape)))
    if values.moved is None:
        mean, variance = kept
    else:
        mean = x.mean(axes)
        variance = jax.numpy.maximum((x * x).mean(axes) - mean * mean, 0.0)
        share = node.attributes["momentum"]
        for name, before, new in zip(names, kept, (mean, variance)):
            values.moved[name] = (1 - share) * before + share * new
    shape = (1, -1) + (1,) * (len(node.shape) - 2)
    scale = values[weight_name(node)] * jax.lax.rsqrt(variance + node.attributes["epsilon"])
    shift = values[node.name + ".bias"].reshape(shape)
    return (x - mean.reshape(shape)) * scale.reshape(shape) + shift


def _local_response_norm(jax, node, _, x):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    around = [(0, 0), (size // 2, (size - 1) // 2), (0, 0), (0, 0)]
    squares = jax.lax.reduce_window(x * x, 0.0, jax.lax.add, (1, size, 1, 1), (1, 1, 1, 1), around)
    return x / (k + response_alpha(node, over_size=False) * squares) ** beta


def _leaky_relu(jax, node, _, x):
    """jax.nn's has derivative 1 at 0."""
    return jax.numpy.where(x > 0, x, node.attributes["slope"] * x)


def _relu6(jax, _node, _values, x):
    """jax.nn's has derivative 1/2 at 0 and at 6."""
    return jax.numpy.where(x > 0, jax.numpy.where(x < 6, x, 6.0), 0.0)


# Functions of (jax, node, values of parameters and states by the job's names, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "tied_dense": _dense,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": lambda _jax, _node, _values, x: x.mean((2, 3)),
    "upsample2d": _upsample2d,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": lambda jax, _node, _values, x: jax.nn.relu(x),
    "leaky_relu": _leaky_relu,
    "relu6": _relu6,
    "tanh": lambda jax, _node, _values, x: jax.numpy.tanh(x),
    "sigmoid": lambda jax, _node, _values, x: jax.nn.sigmoid(x),
    "map_to_sequence": lambda _jax, node, _values, x: x.transpose(0, 2, 1, 3).reshape(node.shape),
    "flatten": lambda _jax, _node, _values, x: x.reshape(x.shape[0], -1),
    "dropout": lambda _jax, _node, _values, x, mask=None: x if mask is None else x * mask,
    "add": lambda _jax, _node, _values, x, *more: sum(more, x),
    "concat": lambda jax, _node, _values, *inputs: jax.numpy.concatenate(inputs, axis=1),
    **jax_sequences.LAYERS,
}


def _softmax_cross_entropy(_, optax, prediction, labels):
    return optax.softmax_cross_entropy_with_integer_labels(prediction, labels).mean()


def _sequence_cross_entropy(jax, optax, prediction, labels):
    counted = labels >= 0
    found = optax.softmax_cross_entropy_with_integer_labels(prediction, jax.numpy.maximum(labels, 0))
    return (found * counted).sum() / counted.sum()


def _squared_error(jax, optax, prediction, labels):
    return optax.squared_error(prediction, jax.nn.one_hot(labels, prediction.shape[1])).mean()


def _mean_squared_error(_, optax, prediction, target):
    return optax.squared_error(prediction, target.reshape(prediction.shape)).mean()


# Functions of (jax, optax, prediction, labels or the numbers wanted): the mean of the batch. That of the sum:
# of (losses, weights).
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
    "loss_sum": lambda losses, weights: sum(weight * one for one, weight in zip(losses, weights)),
}
