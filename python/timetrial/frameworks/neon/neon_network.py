"""The network in Neon's layers: what makes each kind, and each loss. Biases are layers of their own."""

import numpy as np
from timetrial_adapter import bias_name, pair, weight_name


def chain(job):
    """The layers without the loss; Neon's Sequential knows no other order."""
    nodes = [node for node in job.nodes if node.name != job.loss]
    for node, before in zip(nodes, [job.sources[0]] + [node.name for node in nodes]):
        if node.inputs != [before]:
            words = "this adapter of Neon drives chains only, and '{}' follows {}"
            raise ImportError(words.format(node.name, ", ".join(node.inputs)))
    return nodes


def to_neon(array):
    """Kernels as (C*R*S, K), biases as columns."""
    if array.ndim == 4:
        return np.ascontiguousarray(array.transpose(1, 2, 3, 0)).reshape(-1, array.shape[0])
    return array.reshape(array.shape[0], -1)


def make_layers(neon, node, job):
    """One node as Neon's layers, with the job's weights."""
    from neon.initializers import Array

    initial = {name: Array(to_neon(np.array(job.parameters[name]))) for name, _ in node.parameters}
    bias = [neon.layers.Bias(init=initial[bias_name(node)])] if bias_name(node) else []
    return LAYERS[node.kind](neon, node, initial.get(weight_name(node))) + bias


def _dense(neon, node, weight):
    return [neon.layers.Linear(node.attributes["units"], init=weight)]


def _conv2d(neon, node, weight):
    shape = (*pair(node, "kernel"), node.attributes["channels"])
    return [neon.layers.Convolution(shape, init=weight, **_steps(node))]


def _max_pool2d(neon, node, _):
    return [neon.layers.Pooling(pair(node, "kernel"), op="max", **_steps(node))]


def _avg_pool2d(neon, node, _):
    make = _padded_average(neon) if any(pair(node, "padding")) else neon.layers.Pooling
    return [make(pair(node, "kernel"), op="avg", **_steps(node))]


def _steps(node):
    stride, padding = pair(node, "stride"), pair(node, "padding")
    return {
        "strides": dict(zip(("str_h", "str_w"), stride)),
        "padding": dict(zip(("pad_h", "pad_w"), padding)),
    }


def _padded_average(neon):
    """Neon leaves padded cells out of an average; here they count as zeros."""

    class PaddedAverage(neon.layers.Pooling):
        def fprop(self, inputs, inference=False, beta=0.0):
            outputs = super(PaddedAverage, self).fprop(inputs, inference, beta)
            outputs[:] = outputs * self._shares()
            return outputs

        def bprop(self, error, alpha=1.0, beta=0.0):
            error[:] = error * self._shares()
            return super(PaddedAverage, self).bprop(error, alpha, beta)

        def _shares(self):
            """Of cells inside the image, per window, as a column."""
            if not hasattr(self, "_share"):
                layer = self.nglayer
                _, _, height, width = layer.JTRS
                rows = np.array([cells for _, cells in layer.pSlice], np.float32)
                columns = np.array([cells for _, cells in layer.qSlice], np.float32)
                one_channel = np.outer(rows, columns).ravel() / (height * width)
                self._share = self.be.array(np.tile(one_channel, layer.dimO[0]).reshape(-1, 1))
            return self._share

    return PaddedAverage


def _activation(neon, function):
    return [neon.layers.Activation(function)]


# Functions of (neon, node, the weight's initial value or None) that make a list of layers.
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda neon, *_: _activation(neon, neon.transforms.Rectlin()),
    "tanh": lambda neon, *_: _activation(neon, neon.transforms.Tanh()),
    "sigmoid": lambda neon, *_: _activation(neon, neon.transforms.Logistic()),
    "flatten": lambda *_: [],  # images are columns already, channel by channel
}


def _softmax_cross_entropy(neon):
    return neon.transforms.Softmax(), neon.transforms.CrossEntropyMulti()


def _squared_error(_):
    """Neon's own MeanSquared is half of this."""
    from neon.transforms.cost import Cost

    class SquaredError(Cost):
        def __call__(self, y, t):
            return self.be.mean(self.be.square(y - t), axis=0)

        def bprop(self, y, t):
            return (y - t) * (2.0 / y.shape[0])

    return None, SquaredError()


# Functions of neon that make (what the prediction goes through before or None, the cost).
LOSSES = {"softmax_cross_entropy": _softmax_cross_entropy, "squared_error": _squared_error}
