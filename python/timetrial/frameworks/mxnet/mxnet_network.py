"""The network in MXNet's operators: `ops` is mx.nd or mx.sym, which have the same for arrays and symbols."""

from timetrial_adapter import bias_name, pair, weight_name


def layer_values(ops, job, inputs, parameters):
    """Name of a layer -> what it gives, up to the loss. `inputs`: by name; without masks, in inference."""
    values = dict(inputs)
    for node in job.nodes:
        if node.name != job.loss:
            given = [parameters[n] for n in (weight_name(node), bias_name(node)) if n in parameters]
            read = [values[name] for name in node.inputs if name in values]
            values[node.name] = LAYERS[node.kind](ops, node, *read + given)
    return values


def mean_loss(ops, job, prediction, labels):
    """Over the batch, as the job's loss node asks."""
    return LOSSES[job.node(job.loss).kind](ops, job, prediction, labels)


def _dense(ops, node, *inputs):
    units = node.attributes["units"]
    return ops.FullyConnected(*inputs, num_hidden=units, no_bias=len(inputs) == 2, flatten=False)


def _conv2d(ops, node, *inputs):
    channels = node.attributes["channels"]
    return ops.Convolution(*inputs, num_filter=channels, no_bias=len(inputs) == 2, **_window(node))


def _pool(ops, node, x):
    return ops.Pooling(x, pool_type=node.kind[:3], pooling_convention="valid", **_window(node))


def _window(node):
    return {"kernel": pair(node, "kernel"), "stride": pair(node, "stride"), "pad": pair(node, "padding")}


def _activation(ops, node, x):
    return ops.Activation(x, act_type=node.kind)


# Functions of (ops, node, the layer's inputs, its weight, its bias).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _pool,
    "avg_pool2d": _pool,
    "relu": _activation,
    "tanh": _activation,
    "sigmoid": _activation,
    "flatten": lambda ops, _, x: ops.Flatten(x),
    "dropout": lambda _, _node, x, mask=None: x if mask is None else x * mask,
    "add": lambda ops, _, *inputs: ops.add_n(*inputs),
    "concat": lambda ops, _, *inputs: ops.concat(*inputs, dim=1),
}


def _softmax_cross_entropy(ops, _, prediction, labels):
    return ops.mean(-ops.pick(ops.log_softmax(prediction), labels))


def _squared_error(ops, job, prediction, labels):
    return ops.mean(ops.square(prediction - ops.one_hot(labels, depth=job.classes)))


# Functions of (ops, job, prediction, labels).
LOSSES = {"softmax_cross_entropy": _softmax_cross_entropy, "squared_error": _squared_error}
