"""The network in Paddle's layers: what makes each kind of layer, and each loss."""

import paddle_sequences
from timetrial_adapter import bias_name, borders, pair, response_alpha, weight_name


def make_layers(paddle, job):
    """Node -> layer, with the job's names for the parameters."""
    layers = {node.name: LAYERS[node.kind](paddle, node) for node in job.nodes if node.name != job.loss}
    for node in job.nodes:
        if node.kind == "tied_dense":
            layers[node.name].table = layers[node.attributes["tied"]]
    return layers


class _Join(object):
    """A layer of several inputs, without parameters."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *inputs):
        return self._function(list(inputs))

    def parameters(self):
        return []


def _dense(paddle, node):
    units, inputs = node.parameters[0][1]
    return paddle.nn.Linear(inputs, units, **_names(paddle, node))


class _Tied(object):
    """A dense layer with the weight of the embedding `table`."""

    table = None

    def __init__(self, paddle, node):
        self._paddle, self._bias = paddle, None
        if bias_name(node):
            shape = [node.attributes["units"]]
            self._bias = paddle.create_parameter(shape, "float32", name=bias_name(node), is_bias=True)

    def __call__(self, x):
        y = self._paddle.matmul(x, self.table.weight, transpose_y=True)
        return y if self._bias is None else y + self._bias

    def parameters(self):
        return [] if self._bias is None else [self._bias]


def _conv2d(paddle, node):
    out, into = node.parameters[0][1][:2]
    rows, columns = borders(node)
    # Of all four sides only where it must be: the others are seen to be alike by every kernel.
    padding = pair(node, "padding") if len({*rows}) == len({*columns}) == 1 else [*rows, *columns]
    given = {"kernel_size": pair(node, "kernel"), "stride": pair(node, "stride"), "padding": padding}
    groups, dilation = node.attributes["groups"], pair(node, "dilation")
    given.update(groups=groups, dilation=dilation, **_names(paddle, node))
    return paddle.nn.Conv2D(into * groups, out, **given)


def _conv_transpose2d(paddle, node):
    into, out = node.parameters[0][1][:2]
    window = {key: pair(node, key) for key in ("stride", "padding", "output_padding")}
    return paddle.nn.Conv2DTranspose(into, out, pair(node, "kernel"), **window, **_names(paddle, node))


def _batch_norm(paddle, node):
    """What BatchNorm2D does, with names for the running values."""
    mean, variance = [name for name, _ in node.states]
    return paddle.nn.BatchNorm(
        node.shape[1],
        momentum=1 - node.attributes["momentum"],
        epsilon=node.attributes["epsilon"],
        param_attr=paddle.ParamAttr(name=weight_name(node)),
        bias_attr=paddle.ParamAttr(name=node.name + ".bias"),
        moving_mean_name=mean,
        moving_variance_name=variance,
    )


def _local_response_norm(paddle, node):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    return paddle.nn.LocalResponseNorm(size, response_alpha(node, over_size=True), beta, k)


def _global_avg_pool2d(paddle, _):
    return paddle.nn.Sequential(paddle.nn.AdaptiveAvgPool2D(1), paddle.nn.Flatten())


def _names(paddle, node):
    bias = paddle.ParamAttr(name=bias_name(node)) if bias_name(node) else False
    return {"weight_attr": paddle.ParamAttr(name=weight_name(node)), "bias_attr": bias}


def _dropped(given):
    """By the mask of the batch; in inference there is none."""
    x, *mask = given
    return x * mask[0] if mask else x


def _avg_pool2d(paddle, node):
    return paddle.nn.AvgPool2D(*_window(node), exclusive=False)  # padded zeros count


def _window(node):
    return [list(pair(node, key)) for key in ("kernel", "stride", "padding")]


# Functions of (paddle, node) that make a layer.
LAYERS = {
    "dense": _dense,
    "tied_dense": _Tied,
    "conv2d": _conv2d,
    "max_pool2d": lambda paddle, node: paddle.nn.MaxPool2D(*_window(node)),
    "avg_pool2d": _avg_pool2d,
    "conv_transpose2d": _conv_transpose2d,
    "global_avg_pool2d": _global_avg_pool2d,
    "upsample2d": lambda paddle, node: paddle.nn.Upsample(
        scale_factor=list(pair(node, "scale")), mode="nearest"
    ),
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "leaky_relu": lambda paddle, node: paddle.nn.LeakyReLU(node.attributes["slope"]),
    "relu6": lambda paddle, _: paddle.nn.ReLU6(),
    "relu": lambda paddle, _: paddle.nn.ReLU(),
    "tanh": lambda paddle, _: paddle.nn.Tanh(),
    "sigmoid": lambda paddle, _: paddle.nn.Sigmoid(),
    "flatten": lambda paddle, _: paddle.nn.Flatten(),
    "map_to_sequence": lambda paddle, node: paddle_sequences.Layer(
        lambda x: paddle.reshape(paddle.transpose(x, [0, 2, 1, 3]), node.shape)
    ),
    "dropout": lambda paddle, _: _Join(_dropped),
    "add": lambda paddle, _: _Join(paddle.add_n),
    "concat": lambda paddle, _: _Join(lambda inputs: paddle.concat(inputs, axis=1)),
    **paddle_sequences.LAYERS,
}


def _sequence_cross_entropy(functional, prediction, labels):
    rows, flat = prediction.reshape([-1, prediction.shape[-1]]), labels.reshape([-1])
    total = functional.cross_entropy(rows, flat, ignore_index=-1, reduction="sum")
    # Its own mean counts the steps of a negative index among the others.
    return total / (flat != -1).astype(total.dtype).sum()


def _squared_error(functional, prediction, labels):
    return functional.mse_loss(prediction, functional.one_hot(labels, prediction.shape[-1]))


def _mean_squared_error(functional, prediction, target):
    return functional.mse_loss(prediction, target.reshape(prediction.shape))


# Functions of (paddle.nn.functional, prediction, labels or the numbers wanted).
LOSSES = {
    "softmax_cross_entropy": lambda functional, *given: functional.cross_entropy(*given),
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}
