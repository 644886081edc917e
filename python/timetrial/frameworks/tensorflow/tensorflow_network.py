"""The network in the words that TensorFlow 1.4 and 2.21 have in common. Images are (N, H, W, C)."""

from timetrial_adapter import bias_name, keeps_order, pair, weight_name


def predict(tf, job, weights, images):
    """name -> output of every layer but the loss; `weights` has the variables by the job's names."""
    values = {job.sources[0]: images}
    for node in job.nodes:
        if node.name != job.loss:
            values[node.name] = _layer(tf, job, node, weights, *[values[name] for name in node.inputs])
    del values[job.sources[0]]
    return values


def mean_loss(tf, job, prediction, labels):
    """The mean loss of the batch."""
    if job.node(job.loss).kind == "softmax_cross_entropy":
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=prediction)
        return tf.reduce_mean(losses)
    if job.node(job.loss).kind == "mean_squared_error":
        if len(labels.shape) == 4:  # images, channels last; what is predicted of them is in the job's order
            labels = tf.transpose(labels, [0, 3, 1, 2])
        return tf.reduce_mean(tf.square(prediction - tf.reshape(labels, prediction.shape)))
    return tf.reduce_mean(tf.square(prediction - tf.one_hot(labels, job.classes)))


def _layer(tf, job, node, weights, x, *more):
    kind = node.kind
    if kind == "add":
        return tf.add_n((x, *more))
    if kind == "concat":
        return tf.concat((x, *more), axis=-1)  # the channels of images, the features of flat values
    if kind == "flatten":
        if len(x.shape) == 4 and keeps_order(job, node.name):
            x = tf.transpose(x, [0, 3, 1, 2])
        size = 1
        for extent in node.shape[1:]:
            size *= extent
        return tf.reshape(x, [-1, size])
    if kind in ("relu", "tanh", "sigmoid"):
        return {"relu": tf.nn.relu, "tanh": tf.tanh, "sigmoid": tf.sigmoid}[kind](x)
    if kind in ("max_pool2d", "avg_pool2d"):
        # A padded cell never wins a maximum, and counts as zero in an average.
        x = _pad(tf, x, node, -float("inf") if kind == "max_pool2d" else 0.0)
        pool = tf.nn.max_pool if kind == "max_pool2d" else tf.nn.avg_pool
        (height, width), (down, right) = pair(node, "kernel"), pair(node, "stride")
        return pool(x, [1, height, width, 1], [1, down, right, 1], "VALID")
    if kind == "conv2d":
        padding = "VALID"
        if _is_same(node):
            padding = "SAME"
        else:
            x = _pad(tf, x, node, 0.0)
        down, right = pair(node, "stride")
        y = tf.nn.conv2d(x, weights[weight_name(node)], strides=[1, down, right, 1], padding=padding)
    else:
        y = tf.matmul(x, weights[weight_name(node)])
    return tf.nn.bias_add(y, weights[bias_name(node)]) if bias_name(node) else y


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
