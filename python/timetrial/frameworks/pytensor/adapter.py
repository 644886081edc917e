"""PyTensor on the CPU: one compiled function per verb, everything it changes in shared variables.

It has no layers of its own: a convolution is a matrix product over patches, pooling is arithmetic on slices.
"""

import numpy as np
from symbolic_adapter import SymbolicAdapter
from symbolic_sequences import LAYERS as ALONG_TIME
from symbolic_sequences import Symbols
from timetrial_adapter import UNGROUPED, bias_name, blas_threads, borders, pair, response_alpha, weight_name

_MODES = {"numba": "NUMBA", "c": "CVM"}  # ours -> PyTensor's


def _dense(node, values, x):
    y = pt.dot(x, values[weight_name(node)].T)
    return y + values[bias_name(node)] if bias_name(node) else y


def _conv2d(node, values, x):
    n, channels, height, width = node.shape
    patches = pt.concatenate([one.transpose(1, 0, 2, 3) for one in _slices(node, x, 0.0)])
    weight = values[weight_name(node)].transpose(0, 2, 3, 1).reshape((channels, -1))
    y = pt.dot(weight, patches.reshape((-1, n * height * width)))
    y = y.reshape((channels, n, height, width)).transpose(1, 0, 2, 3)
    return y + values[bias_name(node)][None, :, None, None] if bias_name(node) else y


def _max_pool2d(node, _, x):
    best, *others = _slices(node, x, np.finfo(np.float32).min)
    for rival in others:
        best = pt.switch(rival > best, rival, best)  # one winner: maximum() would have two of equals
    return best


def _avg_pool2d(node, _, x):
    return sum(_slices(node, x, 0.0)) / np.float32(np.prod(pair(node, "kernel")))


def _slices(node, x, fill):
    """What each place of the window sees, row by row: slices of the padded images, each as large as the
    output."""
    (kernel_h, kernel_w), (stride_h, stride_w) = pair(node, "kernel"), pair(node, "stride")
    (top, bottom), (left, right) = borders(node)
    step_h, step_w = (node.attributes.get("dilation_" + axis, 1) for axis in "hw")
    n, channels, height, width = x.type.shape
    if top or bottom or left or right:
        shape = (n, channels, height + top + bottom, width + left + right)
        inside = (slice(None), slice(None), slice(top, top + height), slice(left, left + width))
        x = pt.full(shape, np.float32(fill))[inside].set(x)
    rows, columns = (node.shape[2] - 1) * stride_h + 1, (node.shape[3] - 1) * stride_w + 1
    return [
        x[:, :, r * step_h : r * step_h + rows : stride_h, s * step_w : s * step_w + columns : stride_w]
        for r in range(kernel_h)
        for s in range(kernel_w)
    ]


def _upsample2d(node, _, x):
    n, channels, height, width = node.shape
    down, right = pair(node, "scale")
    spread = x[:, :, :, None, :, None] * np.ones((1, 1, 1, down, 1, right), np.float32)
    return spread.reshape((n, channels, height, width))


def _batch_norm(node, values, x):
    names = ["{}.{}".format(node.name, one) for one in ("running_mean", "running_var")]
    mean, variance = (values[name] for name in names)
    if values.moved is not None:
        axes, share = (0, 2, 3)[: len(node.shape) - 1], node.attributes["momentum"]
        kept, (mean, variance) = (mean, variance), (x.mean(axes), x.var(axes))
        for name, before, new in zip(names, kept, (mean, variance)):
            values.moved[name] = np.float32(1 - share) * before + np.float32(share) * new
    places = (None, slice(None), None, None)[: len(node.shape)]
    scale = values[weight_name(node)] / pt.sqrt(variance + np.float32(node.attributes["epsilon"]))
    return (x - mean[places]) * scale[places] + values[node.name + ".bias"][places]


def _local_response_norm(node, _, x):
    n, channels, height, width = node.shape
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    padded = pt.zeros((n, channels + size - 1, height, width), "float32")
    padded = padded[:, size // 2 : size // 2 + channels].set(pt.sqr(x))
    total = sum(padded[:, place : place + channels] for place in range(size))
    return x / (np.float32(k) + np.float32(response_alpha(node, over_size=False)) * total) ** np.float32(beta)


def _leaky_relu(node, _, x):
    return pt.switch(x > 0, x, np.float32(node.attributes["slope"]) * x)


def _relu6(_node, _values, x):
    return pt.switch(x > 0, pt.switch(x < 6, x, np.float32(6)), np.float32(0))


# Functions of (node, parameters and states by the job's names as Values, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "tied_dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": lambda _node, _values, x: x.mean((2, 3)),
    "upsample2d": _upsample2d,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "leaky_relu": _leaky_relu,
    "relu6": _relu6,
    "relu": lambda _node, _values, x: pt.switch(x > 0, x, np.float32(0)),
    "tanh": lambda _node, _values, x: pt.tanh(x),
    "sigmoid": lambda _node, _values, x: pt.sigmoid(x),
    "flatten": lambda node, _, x: x.reshape(node.shape),
    "map_to_sequence": lambda node, _, x: x.dimshuffle(0, 2, 1, 3).reshape(node.shape),
    "dropout": lambda _node, _values, x, mask=None: x if mask is None else x * mask,
    "add": lambda _node, _values, x, *more: sum(more, x),
    "concat": lambda _node, _values, *inputs: pt.concatenate(inputs, axis=1),
    **ALONG_TIME,
}


def _softmax_cross_entropy(prediction, labels, n, classes):
    return -(log_softmax(prediction, axis=1) * _one_hot(labels, classes)).sum() / np.float32(n)


def _sequence_cross_entropy(prediction, labels, n, classes):
    rows, labels = prediction.reshape((-1, classes)), labels.reshape((-1,))
    counted = pt.ge(labels, 0).astype("float32")  # no class is -1
    return -(log_softmax(rows, axis=1) * _one_hot(labels, classes)).sum() / counted.sum()


def _squared_error(prediction, labels, n, classes):
    return pt.sqr(prediction - _one_hot(labels, classes)).sum() / np.float32(n * classes)


def _one_hot(labels, classes):
    return pt.eq(labels[:, None], np.arange(classes)).astype("float32")


def _mean_squared_error(prediction, target, n, classes):
    return pt.sqr(prediction - target.reshape(prediction.shape)).sum() / np.float32(n * classes)


# Functions of (prediction, labels or the numbers wanted, batch size, classes).
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}

LIMITS = {"conv2d": UNGROUPED}


class Adapter(SymbolicAdapter):
    """Modes name what compiles: `numba` or `c`."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS

    def load(self, settings):
        """Imports PyTensor. Where it compiles PYTENSOR_FLAGS and NUMBA_CACHE_DIR have told it."""
        global log_softmax, pt, pytensor
        import pytensor
        import pytensor.tensor as pt
        from pytensor.tensor.special import log_softmax

        self.version = pytensor.__version__
        self.library = "PyTensor {}".format(pytensor.__version__)

    def read_settings(self):
        """Threads are those of the BLAS; the mode is what linked the function that was compiled."""
        linker = type(next(iter(self._functions.values())).maker.linker).__name__
        mode = "numba" if linker == "NumbaLinker" else "c" if linker == "VMLinker" else linker
        library = "/scipy" if mode == "numba" else "libblas.so"
        return {"threads": blas_threads(library), "mode": (mode, "the function's linker: " + linker)}

    def facts(self):
        """How its C code was linked."""
        linked = {
            "pytensor.blas.ldflags": pytensor.config.blas__ldflags,
            "pytensor.cxx": pytensor.config.cxx,
        }
        return dict(super().facts(), **linked)

    def _share(self, array, borrow=False):
        return pytensor.shared(array, shape=array.shape, borrow=borrow)

    def _compile(self, outputs, updates=()):
        return pytensor.function([], outputs, updates=list(updates), mode=_MODES[self.mode])

    def _interpret(self, outputs):
        return pytensor.function([], outputs, mode="FAST_COMPILE")  # Numba would compile for minutes

    def _gradients_of(self, loss, weights):
        return pytensor.grad(loss, weights)

    def _symbols(self, way):
        def scan(step, sequences, start, constants):
            if self.mode == "numba":
                raise ImportError(
                    "the backend has no recurrent layers with mode=numba, which would compile each for "
                    "minutes; take mode=c"
                )
            return pytensor.scan(step, sequences, start, constants, return_list=True, return_updates=False)

        return Symbols(pt, pt.sigmoid, scan, way)

    def _layer(self, node, values, *inputs):
        return LAYERS[node.kind](node, values, *inputs)

    def _loss_of(self, prediction):
        kind = self._job.node(self._job.loss).kind
        return LOSSES[kind](prediction, self.labels, self._job.batch_size, self._job.classes)

    def _sqrt(self, x):
        return pt.sqrt(x)

    def _maximum(self, x, y):
        return pt.maximum(x, y)
