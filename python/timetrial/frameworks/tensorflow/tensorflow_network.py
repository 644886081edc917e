"""The network in the words that TensorFlow 1.4 and 2.21 have in common. Images are (N, H, W, C)."""

from timetrial_adapter import bias_name, keeps_order, pair, weight_name


def predict(tf, job, weights, images, masks=None):
    """name -> output of every layer but the loss; `weights` has the variables by the job's names. `masks` are
    those of the batch: without them, in inference."""
    values = dict(masks or {})
    values[job.sources[0]] = images
    for node in job.nodes:
        if node.name != job.loss:
            x, *more = [values[name] for name in node.inputs if name in values]
            if node.kind == "flatten" and len(x.shape) == 4 and keeps_order(job, node.name):
                x = tf.transpose(x, [0, 3, 1, 2])
            values[node.name] = LAYERS[node.kind](tf, node, weights, x, *more)
    return {name: value for name, value in values.items() if name not in job.inputs}


def mean_loss(tf, job, prediction, labels):
    """The mean loss of the batch."""
    return LOSSES[job.node(job.loss).kind](tf, prediction, labels)


def _is_same(node):
    """Whether TensorFlow's own word for this padding is "SAME"."""
    kernel = pair(node, "kernel")
    odd = all(extent % 2 == 1 for extent in kernel)
    return pair(node, "stride") == (1, 1) and odd and pair(node, "padding") == tuple(k // 2 for k in kernel)


def _pad(tf, x, node, value):
    height, width = pair(node, "padding")
    if not height and not width:
        return x
    return tf.pad(x, [[0, 0], [height, height], [width, width], [0, 0]], constant_values=value)


def _dense(tf, node, weights, x):
    return _biased(tf, node, weights, tf.matmul(x, weights[weight_name(node)]))


def _conv2d(tf, node, weights, x):
    same, (down, right) = _is_same(node), pair(node, "stride")
    x = x if same else _pad(tf, x, node, 0.0)
    padding, weight = "SAME" if same else "VALID", weights[weight_name(node)]
    y = tf.nn.conv2d(x, weight, strides=[1, down, right, 1], padding=padding)
    return _biased(tf, node, weights, y)


def _biased(tf, node, weights, y):
    return tf.nn.bias_add(y, weights[bias_name(node)]) if bias_name(node) else y


def _max_pool2d(tf, node, _, x):
    """A padded cell never wins."""
    return tf.nn.max_pool(_pad(tf, x, node, -float("inf")), *_window(node))


def _avg_pool2d(tf, node, _, x):
    """A padded cell counts as zero."""
    return tf.nn.avg_pool(_pad(tf, x, node, 0.0), *_window(node))


def _window(node):
    (height, width), (down, right) = pair(node, "kernel"), pair(node, "stride")
    return [1, height, width, 1], [1, down, right, 1], "VALID"


def _flatten(tf, node, _, x):
    size = 1
    for extent in node.shape[1:]:
        size *= extent
    return tf.reshape(x, [-1, size])


# Functions of (tf, node, variables by the job's names, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda tf, _node, _weights, x: tf.nn.relu(x),
    "tanh": lambda tf, _node, _weights, x: tf.tanh(x),
    "sigmoid": lambda tf, _node, _weights, x: tf.sigmoid(x),
    "flatten": _flatten,
    "dropout": lambda _tf, _node, _weights, x, mask=None: x if mask is None else x * mask,
    "add": lambda tf, _node, _weights, *inputs: tf.add_n(inputs),
    # The channels of images, the features of flat values.
    "concat": lambda tf, _node, _weights, *inputs: tf.concat(inputs, axis=-1),
}


def _softmax_cross_entropy(tf, prediction, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=prediction)
    return tf.reduce_mean(losses)


def _squared_error(tf, prediction, labels):
    return tf.reduce_mean(tf.square(prediction - tf.one_hot(labels, int(prediction.shape[-1]))))


def _mean_squared_error(tf, prediction, target):
    if len(target.shape) == 4:  # images, channels last; what is predicted of them is in the job's order
        target = tf.transpose(target, [0, 3, 1, 2])
    return tf.reduce_mean(tf.square(prediction - tf.reshape(target, prediction.shape)))


# Functions of (tf, prediction, labels or the numbers wanted).
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}
