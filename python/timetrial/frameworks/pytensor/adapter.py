"""PyTensor on the CPU: one compiled function per verb, everything it changes in shared variables.

It has no layers of its own: a convolution is a matrix product over patches, pooling is arithmetic on slices.
"""

import numpy as np
from symbolic_adapter import SymbolicAdapter
from timetrial_adapter import bias_name, blas_threads, pair, weight_name

_MODES = {"numba": "NUMBA", "c": "CVM"}  # ours -> PyTensor's


def _dense(node, weights, x):
    y = pt.dot(x, weights[weight_name(node)].T)
    return y + weights[bias_name(node)] if bias_name(node) else y


def _conv2d(node, weights, x):
    n, channels, height, width = node.shape
    patches = pt.concatenate([one.transpose(1, 0, 2, 3) for one in _slices(node, x, 0.0)])
    weight = weights[weight_name(node)].transpose(0, 2, 3, 1).reshape((channels, -1))
    y = pt.dot(weight, patches.reshape((-1, n * height * width)))
    y = y.reshape((channels, n, height, width)).transpose(1, 0, 2, 3)
    return y + weights[bias_name(node)][None, :, None, None] if bias_name(node) else y


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
    (padding_h, padding_w), (n, channels, height, width) = pair(node, "padding"), x.type.shape
    if padding_h or padding_w:
        shape = (n, channels, height + 2 * padding_h, width + 2 * padding_w)
        inside = (slice(None), slice(None), slice(padding_h, padding_h + height))
        inside += (slice(padding_w, padding_w + width),)
        x = pt.full(shape, np.float32(fill))[inside].set(x)
    rows, columns = (node.shape[2] - 1) * stride_h + 1, (node.shape[3] - 1) * stride_w + 1
    return [
        x[:, :, r : r + rows : stride_h, s : s + columns : stride_w]
        for r in range(kernel_h)
        for s in range(kernel_w)
    ]


# Functions of (node, weights by the job's names, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda _node, _weights, x: pt.switch(x > 0, x, np.float32(0)),
    "tanh": lambda _node, _weights, x: pt.tanh(x),
    "sigmoid": lambda _node, _weights, x: pt.sigmoid(x),
    "flatten": lambda node, _, x: x.reshape(node.shape),
    "dropout": lambda _node, _weights, x, mask=None: x if mask is None else x * mask,
    "add": lambda _node, _weights, x, *more: sum(more, x),
    "concat": lambda _node, _weights, *inputs: pt.concatenate(inputs, axis=1),
}


def _softmax_cross_entropy(prediction, labels, n, classes):
    return -(log_softmax(prediction, axis=1) * _one_hot(labels, classes)).sum() / np.float32(n)


def _squared_error(prediction, labels, n, classes):
    return pt.sqr(prediction - _one_hot(labels, classes)).sum() / np.float32(n * classes)


def _one_hot(labels, classes):
    return pt.eq(labels[:, None], np.arange(classes)).astype("float32")


# Functions of (prediction, labels, batch size, classes).
LOSSES = {"softmax_cross_entropy": _softmax_cross_entropy, "squared_error": _squared_error}


class Adapter(SymbolicAdapter):
    """Modes name what compiles: `numba` or `c`."""

    layers = (*LAYERS, *LOSSES)

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
        return {
            "pytensor.blas.ldflags": pytensor.config.blas__ldflags,
            "pytensor.cxx": pytensor.config.cxx,
        }

    def _share(self, array, borrow=False):
        return pytensor.shared(array, shape=array.shape, borrow=borrow)

    def _compile(self, outputs, updates=()):
        return pytensor.function([], outputs, updates=list(updates), mode=_MODES[self.mode])

    def _interpret(self, outputs):
        return pytensor.function([], outputs, mode="FAST_COMPILE")  # Numba would compile for minutes

    def _gradients_of(self, loss, weights):
        return pytensor.grad(loss, weights)

    def _layer(self, node, *inputs):
        return LAYERS[node.kind](node, self._weights, *inputs)

    def _loss_of(self, prediction):
        kind = self._job.node(self._job.loss).kind
        return LOSSES[kind](prediction, self.labels, self._job.batch_size, self._job.classes)

    def _sqrt(self, x):
        return pt.sqrt(x)

    def _maximum(self, x, y):
        return pt.maximum(x, y)
