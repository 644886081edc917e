"""Theano on the CPU: one compiled function per verb, everything it changes in shared variables."""

import numpy as np
from symbolic_adapter import SymbolicAdapter
from symbolic_sequences import LAYERS as ALONG_TIME
from symbolic_sequences import Symbols
from timetrial_adapter import bias_name, blas_threads, borders, pair, response_alpha, weight_name


def _dense(node, values, x):
    y = tensor.dot(x, values[weight_name(node)].T)
    return y + values[bias_name(node)] if bias_name(node) else y


def _conv2d(node, values, x):
    border = borders(node)
    if all(before == after for before, after in border):
        border = pair(node, "padding")
    window = {"border_mode": border, "subsample": pair(node, "stride"), "filter_flip": False}
    window.update(filter_dilation=pair(node, "dilation"), num_groups=node.attributes["groups"])
    return _biased(node, values, tensor.nnet.conv2d(x, values[weight_name(node)], **window))


def _conv_transpose2d(node, values, x):
    window = {"border_mode": pair(node, "padding"), "input_dilation": pair(node, "stride")}
    shape, weight = node.shape, values[weight_name(node)]
    return _biased(node, values, tensor.nnet.conv2d_transpose(x, weight, shape, filter_flip=False, **window))


def _biased(node, values, y):
    return y + values[bias_name(node)].dimshuffle("x", 0, "x", "x") if bias_name(node) else y


def _max_pool2d(node, _, x):
    return _pool(node, x, "max")


def _avg_pool2d(node, _, x):
    return _pool(node, x, "average_inc_pad")  # padded zeros count


def _pool(node, x, mode):
    window, stride, border = (pair(node, key) for key in ("kernel", "stride", "padding"))
    return pool_2d(x, ws=window, ignore_border=True, stride=stride, pad=border, mode=mode)


def _batch_norm(node, values, x):
    """In operations on tensors, as Lasagne's layer has it: Theano's own takes no epsilon below 1e-5."""
    names = ["{}.{}".format(node.name, one) for one in ("running_mean", "running_var")]
    mean, variance = (values[name] for name in names)
    if values.moved is not None:
        axes, share = (0, 2, 3)[: len(node.shape) - 1], node.attributes["momentum"]
        kept, (mean, variance) = (mean, variance), (x.mean(axes), x.var(axes))
        for name, before, new in zip(names, kept, (mean, variance)):
            values.moved[name] = np.float32(1 - share) * before + np.float32(share) * new
    places = ("x", 0, "x", "x")[: len(node.shape)]
    scale = values[weight_name(node)] / tensor.sqrt(variance + np.float32(node.attributes["epsilon"]))
    centered = x - mean.dimshuffle(*places)
    return centered * scale.dimshuffle(*places) + values[node.name + ".bias"].dimshuffle(*places)


def _local_response_norm(node, _, x):
    """As Lasagne's layer has it; Theano has none."""
    n, channels, height, width = node.shape
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    padded = tensor.alloc(np.float32(0), n, channels + size - 1, height, width)
    padded = tensor.set_subtensor(padded[:, size // 2 : size // 2 + channels], tensor.sqr(x))
    total = sum(padded[:, place : place + channels] for place in range(size))
    return x / (np.float32(k) + np.float32(response_alpha(node, over_size=False)) * total) ** np.float32(beta)


def _upsample2d(node, _, x):
    down, right = pair(node, "scale")
    return tensor.repeat(tensor.repeat(x, down, axis=2), right, axis=3)


def _leaky_relu(node, _, x):
    """tensor.nnet's has derivative (1 + slope) / 2 at 0."""
    return tensor.switch(x > 0, x, np.float32(node.attributes["slope"]) * x)


def _relu6(_node, _values, x):
    return tensor.switch(x > 0, tensor.switch(x < 6, x, np.float32(6)), np.float32(0))


# Functions of (node, parameters and states by the job's names as Values, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "tied_dense": _dense,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": lambda _node, _values, x: x.mean((2, 3)),
    "upsample2d": _upsample2d,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "leaky_relu": _leaky_relu,
    "relu6": _relu6,
    "relu": lambda _node, _values, x: tensor.nnet.relu(x),
    "tanh": lambda _node, _values, x: tensor.tanh(x),
    "sigmoid": lambda _node, _values, x: tensor.nnet.sigmoid(x),
    "flatten": lambda _node, _values, x: x.flatten(2),
    "map_to_sequence": lambda node, _values, x: x.dimshuffle(0, 2, 1, 3).reshape(node.shape),
    "dropout": lambda _node, _values, x, mask=None: x if mask is None else x * mask,
    "add": lambda _node, _values, x, *more: sum(more, x),
    "concat": lambda _node, _values, *inputs: tensor.concatenate(inputs, axis=1),
    **ALONG_TIME,
}


def _softmax_cross_entropy(prediction, labels, *_):
    return tensor.nnet.categorical_crossentropy(tensor.nnet.softmax(prediction), labels).mean()


def _sequence_cross_entropy(prediction, labels, *_):
    rows, labels = prediction.reshape((-1, prediction.shape[-1])), labels.flatten()
    counted = tensor.ge(labels, 0).astype("float32")
    losses = tensor.nnet.categorical_crossentropy(tensor.nnet.softmax(rows), tensor.maximum(labels, 0))
    return (losses * counted).sum() / counted.sum()


def _squared_error(prediction, labels, _, classes):
    target = tensor.extra_ops.to_one_hot(labels, classes, dtype="float32")
    return tensor.sqr(prediction - target).mean()


def _mean_squared_error(prediction, target, *_):
    return tensor.sqr(prediction - target.reshape(prediction.shape)).mean()


# Functions of (prediction, labels or the numbers wanted, batch size, classes).
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}


class Adapter(SymbolicAdapter):
    """Layers and loss are Theano's own; all else is in symbolic_adapter.py."""

    layers = (*LAYERS, *LOSSES)

    def load(self, settings):
        """Imports Theano. Which BLAS it links to, and where it compiles, THEANO_FLAGS has told it."""
        global pool_2d, tensor, theano
        import theano
        from theano import tensor
        from theano.tensor.signal.pool import pool_2d

        self.version = theano.__version__
        self.library = "Theano {}".format(theano.__version__)

    def read_settings(self):
        """Threads are those of the BLAS; Theano's own loops are serial unless its flag `openmp` is set."""
        return {"threads": blas_threads("/usr/lib")}

    def facts(self):
        """How its C code was compiled and linked."""
        linked = {
            "theano.blas.ldflags": theano.config.blas.ldflags,
            "theano.openmp": theano.config.openmp,
            "theano.cxx": theano.config.cxx,
        }
        return dict(super().facts(), **linked)

    def _share(self, array, borrow=False):
        return theano.shared(array, borrow=borrow)

    def _compile(self, outputs, updates=()):
        return theano.function([], outputs, updates=list(updates))

    def _gradients_of(self, loss, weights):
        return tensor.grad(loss, weights)

    def _symbols(self, way):
        def scan(step, sequences, start, constants):
            return theano.scan(step, sequences, start, constants, return_list=True)[0]

        return Symbols(tensor, tensor.nnet.sigmoid, scan, way)

    def _layer(self, node, values, *inputs):
        return LAYERS[node.kind](node, values, *inputs)

    def _loss_of(self, prediction):
        kind = self._job.node(self._job.loss).kind
        return LOSSES[kind](prediction, self.labels, self._job.batch_size, self._job.classes)

    def _sqrt(self, x):
        return tensor.sqrt(x)

    def _maximum(self, x, y):
        return tensor.maximum(x, y)
