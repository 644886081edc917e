"""PyTensor on the CPU: one compiled function per verb, everything it changes in shared variables.

It has no layers of its own: a convolution is a matrix product over patches, pooling is arithmetic on slices.
"""

import numpy as np
from symbolic_adapter import SymbolicAdapter
from timetrial_adapter import JOINS, LAYERS, bias_name, blas_threads, pair, weight_name

_MODES = {"numba": "NUMBA", "c": "CVM"}  # ours -> PyTensor's


class Adapter(SymbolicAdapter):
    """Modes name what compiles: `numba` or `c`."""

    layers = LAYERS + JOINS

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

    def _loss_of(self, prediction):
        classes = self._job.classes
        target = pt.eq(self.labels[:, None], np.arange(classes)).astype("float32")
        if self._job.node(self._job.loss).kind == "softmax_cross_entropy":
            return -(log_softmax(prediction, axis=1) * target).sum() / np.float32(self._job.batch_size)
        return pt.sqr(prediction - target).sum() / np.float32(self._job.batch_size * classes)

    def _layer(self, node, x, *more):
        if node.kind == "add":
            return sum(more, x)
        if node.kind == "concat":
            return pt.concatenate([x, *list(more)], axis=1)
        if node.kind == "dense":
            y = pt.dot(x, self._weights[weight_name(node)].T)
            return y + self._weights[bias_name(node)] if bias_name(node) else y
        if node.kind == "conv2d":
            return self._convolution(node, x)
        if node.kind == "max_pool2d":
            best, *others = _slices(node, x, np.finfo(np.float32).min)
            for rival in others:
                best = pt.switch(rival > best, rival, best)  # one winner: maximum() would have two of equals
            return best
        if node.kind == "avg_pool2d":
            return sum(_slices(node, x, 0.0)) / np.float32(np.prod(pair(node, "kernel")))
        if node.kind == "flatten":
            return x.reshape(node.shape)
        if node.kind == "relu":
            return pt.switch(x > 0, x, np.float32(0))
        return {"tanh": pt.tanh, "sigmoid": pt.sigmoid}[node.kind](x)

    def _convolution(self, node, x):
        n, channels, height, width = node.shape
        patches = pt.concatenate([one.transpose(1, 0, 2, 3) for one in _slices(node, x, 0.0)])
        weight = self._weights[weight_name(node)].transpose(0, 2, 3, 1).reshape((channels, -1))
        y = pt.dot(weight, patches.reshape((-1, n * height * width)))
        y = y.reshape((channels, n, height, width)).transpose(1, 0, 2, 3)
        return y + self._weights[bias_name(node)][None, :, None, None] if bias_name(node) else y


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
