"""What makes each kind of layer, in the words that TensorFlow 1.4 and 2.21 have in common. Images are
(N, H, W, C)."""

import tensorflow_sequences
from timetrial_adapter import (
    bias_name,
    biased_share,
    borders,
    pair,
    response_alpha,
    same_borders,
    weight_name,
)


def _is_old(tf):
    """TensorFlow 1, which on the CPU has no convolution in groups."""
    return tf.__version__.startswith("1.")


def _pad(tf, x, node, value):
    if borders(node) == ((0, 0), (0, 0)):
        return x
    return tf.pad(x, [[0, 0], *map(list, borders(node)), [0, 0]], constant_values=value)


def _dense(tf, node, values, x):
    """Of a sequence, all steps of all samples at once."""
    flat = tf.reshape(x, [-1, int(x.shape[-1])]) if len(node.shape) == 3 else x
    is_turned = node.kind == "tied_dense"  # a table is kept as it is
    y = _biased(tf, node, values, tf.matmul(flat, values[weight_name(node)], transpose_b=is_turned))
    return tf.reshape(y, node.shape) if len(node.shape) == 3 else y


def _conv2d(tf, node, values, x):
    is_same = borders(node) == same_borders(node, [int(x.shape[axis]) for axis in (0, 3, 1, 2)])
    x = x if is_same else _pad(tf, x, node, 0.0)
    return _biased(tf, node, values, _convolve(tf, node, x, values, "SAME" if is_same else "VALID"))


def _convolve(tf, node, x, values, padding):
    weight, groups = values[weight_name(node)], node.attributes["groups"]
    (down, right), dilation = pair(node, "stride"), pair(node, "dilation")
    given = {"strides": [1, down, right, 1], "padding": padding}
    if groups > 1 and groups == int(x.shape[-1]) and down == right:  # depthwise: (H, W, C, outputs of each)
        outputs = node.attributes["channels"] // groups
        weight = tf.reshape(weight, [*pair(node, "kernel"), groups, outputs])
        if dilation != (1, 1):
            given["dilations"] = dilation
        return tf.nn.depthwise_conv2d(x, weight, **given)
    if dilation != (1, 1):
        given["dilations"] = [1, *dilation, 1]
    if groups == 1 or not _is_old(tf):
        return tf.nn.conv2d(x, weight, **given)
    parts = zip(tf.split(x, groups, axis=3), tf.split(weight, groups, axis=3))
    return tf.concat([tf.nn.conv2d(*part, **given) for part in parts], axis=3)


def _conv_transpose2d(tf, node, values, x):
    n, channels, height, width = node.shape
    (down, right), (above, left) = pair(node, "stride"), pair(node, "padding")
    weight, strides = values[weight_name(node)], [1, down, right, 1]
    if above == left == 0 or not _is_old(tf):
        padding = [[0, 0], [above, above], [left, left], [0, 0]] if above or left else "VALID"
        shape = [n, height, width, channels]
        y = tf.nn.conv2d_transpose(x, weight, shape, strides=strides, padding=padding)
    else:  # of which the old one has no padding in numbers
        shape = [n, height + 2 * above, width + 2 * left, channels]
        y = tf.nn.conv2d_transpose(x, weight, shape, strides=strides, padding="VALID")
        y = y[:, above : above + height, left : left + width]
    return _biased(tf, node, values, y)


def _biased(tf, node, values, y):
    return tf.nn.bias_add(y, values[bias_name(node)]) if bias_name(node) else y


def _max_pool2d(tf, node, _, x):
    """A padded cell never wins."""
    return tf.nn.max_pool(_pad(tf, x, node, -float("inf")), *_window(node))


def _avg_pool2d(tf, node, _, x):
    """A padded cell counts as zero."""
    return tf.nn.avg_pool(_pad(tf, x, node, 0.0), *_window(node))


def _window(node):
    (height, width), (down, right) = pair(node, "kernel"), pair(node, "stride")
    return [1, height, width, 1], [1, down, right, 1], "VALID"


def _upsample2d(tf, node, _, x):
    """As tf.repeat() does it, both axes at once."""
    n, channels, height, width = node.shape
    down, right = pair(node, "scale")
    spread = tf.reshape(x, [n, height // down, 1, width // right, 1, channels])
    return tf.reshape(tf.tile(spread, [1, 1, down, 1, right, 1]), [n, height, width, channels])


def _batch_norm(tf, node, values, x):
    """The operation itself: tf.nn's function for it takes no epsilon below 1.001e-5. What it says of a batch
    is the unbiased variance."""
    learns, share = values.moved is not None, node.attributes["momentum"]
    names = ["{}.{}".format(node.name, one) for one in ("running_mean", "running_var")]
    kept = [values[name] for name in names]
    images = x if len(node.shape) == 4 else tf.reshape(x, [node.shape[0], 1, 1, node.shape[1]])
    none = tf.constant([], tf.float32)
    y, mean, variance = _fused(tf)(
        x=images,
        scale=values[weight_name(node)],
        offset=values[node.name + ".bias"],
        mean=none if learns else kept[0],
        variance=none if learns else kept[1],
        epsilon=node.attributes["epsilon"],
        is_training=learns,
    )[:3]
    if learns:
        values.moved[names[0]] = (1 - share) * kept[0] + share * mean
        values.moved[names[1]] = (1 - share) * kept[1] + share * biased_share(node) * variance
    return y if len(node.shape) == 4 else tf.reshape(y, node.shape)


def _fused(tf):
    if hasattr(tf, "raw_ops"):
        return tf.raw_ops.FusedBatchNormV3
    from tensorflow.python.ops import gen_nn_ops

    return getattr(gen_nn_ops, "fused_batch_norm", None) or gen_nn_ops._fused_batch_norm


def _local_response_norm(tf, node, _, x):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    alpha = response_alpha(node, over_size=False)
    return tf.nn.local_response_normalization(x, depth_radius=size // 2, bias=k, alpha=alpha, beta=beta)


def _leaky_relu(tf, node, _, x):
    slope = node.attributes["slope"]
    if slope > 1 and _is_old(tf):  # where it is the larger one of x and slope x
        return tf.where(x > 0, x, slope * x)
    return tf.nn.leaky_relu(x, slope)


def _flatten(tf, node, _, x):
    size = 1
    for extent in node.shape[1:]:
        size *= extent
    return tf.reshape(x, [-1, size])


def _map_to_sequence(tf, node, _, x):
    """Of (N, H, W, C)."""
    return tf.reshape(tf.transpose(x, [0, 1, 3, 2]), node.shape)


# Functions of (tf, node, variables by the job's names as Values, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "tied_dense": _dense,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": lambda tf, _node, _values, x: tf.reduce_mean(x, [1, 2]),
    "upsample2d": _upsample2d,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": lambda tf, _node, _values, x: tf.nn.relu(x),
    "leaky_relu": _leaky_relu,
    "relu6": lambda tf, _node, _values, x: tf.nn.relu6(x),
    "tanh": lambda tf, _node, _values, x: tf.tanh(x),
    "sigmoid": lambda tf, _node, _values, x: tf.sigmoid(x),
    "flatten": _flatten,
    "map_to_sequence": _map_to_sequence,
    "dropout": lambda _tf, _node, _values, x, mask=None: x if mask is None else x * mask,
    "add": lambda tf, _node, _values, *inputs: tf.add_n(inputs),
    # The channels of images, the features of flat values.
    "concat": lambda tf, _node, _values, *inputs: tf.concat(inputs, axis=-1),
    **tensorflow_sequences.LAYERS,
}
