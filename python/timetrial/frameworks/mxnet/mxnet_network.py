"""The network in MXNet's operators: `ops` is mx.nd or mx.sym, which have the same for arrays and symbols."""

import mxnet_sequences
from timetrial_adapter import borders, is_recurrent, pair, response_alpha, weight_name


def layer_values(ops, job, inputs, parameters, learns):
    """(name of a layer -> what it gives, up to the loss; name of a carried state -> what it comes to).
    `inputs`: by name; without masks, in inference. `parameters`: with the states of layers. `learns`: whether
    layers go on from states that they carry."""
    values, moved = dict(inputs), {}
    for node in job.nodes:
        if node.name != job.loss:
            tied = [parameters[weight_name(node)]] if node.kind == "tied_dense" else []
            states = node.states if learns or not is_recurrent(node) else []
            given = tied + [parameters[name] for name, _ in [*node.parameters, *states]]
            read = [values[name] for name in node.inputs if name in values]
            found = LAYERS[node.kind](ops, node, *read + given)
            if isinstance(found, list):
                moved.update((name, value) for (name, _), value in zip(states, found[1:]))
                found = found[0]
            values[node.name] = found
    return values, moved


def mean_loss(ops, job, prediction, labels):
    """Over the batch, as the job's loss node asks."""
    return LOSSES[job.node(job.loss).kind](ops, job, prediction, labels)


def _dense(ops, node, *inputs):
    units = node.attributes["units"]
    return ops.FullyConnected(*inputs, num_hidden=units, no_bias=len(inputs) == 2, flatten=False)


def _conv2d(ops, node, x, *given):
    channels, groups = node.attributes["channels"], node.attributes["groups"]
    window, (rows, columns) = dict(_window(node), dilate=pair(node, "dilation")), borders(node)
    if rows[0] != rows[1] or columns[0] != columns[1]:  # its own padding is the same before and after
        x = ops.Pad(x, mode="constant", pad_width=(0, 0, 0, 0, *rows, *columns), constant_value=0)
        window["pad"] = (0, 0)
    no_bias = len(given) == 1
    return ops.Convolution(x, *given, num_filter=channels, num_group=groups, no_bias=no_bias, **window)


def _conv_transpose2d(ops, node, x, *given):
    channels, more = node.attributes["channels"], pair(node, "output_padding")
    return ops.Deconvolution(
        x, *given, num_filter=channels, adj=more, no_bias=len(given) == 1, **_window(node)
    )


def _pool(ops, node, x):
    return ops.Pooling(x, pool_type=node.kind[:3], pooling_convention="valid", **_window(node))


def _window(node):
    return {"kernel": pair(node, "kernel"), "stride": pair(node, "stride"), "pad": pair(node, "padding")}


def _activation(ops, node, x):
    return ops.Activation(x, act_type=node.kind)


def _global_avg_pool2d(ops, _, x):
    return ops.Flatten(ops.Pooling(x, pool_type="avg", global_pool=True, kernel=(1, 1)))


def _upsample2d(ops, node, x):
    down, right = pair(node, "scale")
    if down == right:
        return ops.UpSampling(x, scale=down, sample_type="nearest")
    return ops.repeat(ops.repeat(x, repeats=down, axis=2), repeats=right, axis=3)


def _batch_norm(ops, node, *given):
    """By default it would leave out the weight. It moves the running values itself, with biased variances."""
    share, epsilon = node.attributes["momentum"], node.attributes["epsilon"]
    return ops.BatchNorm(*given, eps=epsilon, momentum=1 - share, fix_gamma=False)


def _local_response_norm(ops, node, x):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    return ops.LRN(x, nsize=size, alpha=response_alpha(node, over_size=True), beta=beta, knorm=k)


def _leaky_relu(ops, node, x):
    return ops.LeakyReLU(x, act_type="leaky", slope=node.attributes["slope"])


def _relu6(ops, _, x):
    """A clip to 0 and 6 would have derivative 1 at 0."""
    return ops.minimum(ops.relu(x), 6.0)


# Functions of (ops, node, the layer's inputs, its weight, its bias, its states).
LAYERS = {
    "dense": _dense,
    "tied_dense": _dense,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _pool,
    "avg_pool2d": _pool,
    "global_avg_pool2d": _global_avg_pool2d,
    "upsample2d": _upsample2d,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": _activation,
    "leaky_relu": _leaky_relu,
    "relu6": _relu6,
    "tanh": _activation,
    "sigmoid": _activation,
    "flatten": lambda ops, _, x: ops.Flatten(x),
    "map_to_sequence": lambda ops, node, x: ops.reshape(
        ops.transpose(x, axes=(0, 2, 1, 3)), shape=node.shape
    ),
    "dropout": lambda _, _node, x, mask=None: x if mask is None else x * mask,
    "add": lambda ops, _, *inputs: ops.add_n(*inputs),
    "concat": lambda ops, _, *inputs: ops.concat(*inputs, dim=1),
    **mxnet_sequences.LAYERS,
}


def _softmax_cross_entropy(ops, _, prediction, labels):
    return ops.mean(-ops.pick(ops.log_softmax(prediction), labels))


def _sequence_cross_entropy(ops, _, prediction, labels):
    # pick() takes the first class for a label of -1, which then counts nothing.
    counted = ops.cast(labels >= 0, "float32")
    return ops.sum(-ops.pick(ops.log_softmax(prediction), labels) * counted) / ops.sum(counted)


def _squared_error(ops, job, prediction, labels):
    return ops.mean(ops.square(prediction - ops.one_hot(labels, depth=job.classes)))


def _mean_squared_error(ops, _, prediction, target):
    return ops.mean(ops.square(prediction - ops.reshape_like(target, prediction)))


# Functions of (ops, job, prediction, labels or the numbers wanted).
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}
