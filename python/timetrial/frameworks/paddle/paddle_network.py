"""The network in Paddle's layers: what makes each kind of layer, and each loss."""

from timetrial_adapter import bias_name, pair, weight_name


def make_layers(paddle, job):
    """Node -> layer, with the job's names for the parameters."""
    return {node.name: LAYERS[node.kind](paddle, node) for node in job.nodes if node.name != job.loss}


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


def _conv2d(paddle, node):
    out, into = node.parameters[0][1][:2]
    window = {"kernel_size": pair(node, "kernel"), "stride": pair(node, "stride")}
    return paddle.nn.Conv2D(into, out, padding=pair(node, "padding"), **window, **_names(paddle, node))


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
    "conv2d": _conv2d,
    "max_pool2d": lambda paddle, node: paddle.nn.MaxPool2D(*_window(node)),
    "avg_pool2d": _avg_pool2d,
    "relu": lambda paddle, _: paddle.nn.ReLU(),
    "tanh": lambda paddle, _: paddle.nn.Tanh(),
    "sigmoid": lambda paddle, _: paddle.nn.Sigmoid(),
    "flatten": lambda paddle, _: paddle.nn.Flatten(),
    "dropout": lambda paddle, _: _Join(_dropped),
    "add": lambda paddle, _: _Join(paddle.add_n),
    "concat": lambda paddle, _: _Join(lambda inputs: paddle.concat(inputs, axis=1)),
}


def _squared_error(functional, prediction, labels):
    return functional.mse_loss(prediction, functional.one_hot(labels, prediction.shape[-1]))


# Functions of (paddle.nn.functional, prediction, labels).
LOSSES = {
    "softmax_cross_entropy": lambda functional, *given: functional.cross_entropy(*given),
    "squared_error": _squared_error,
}
