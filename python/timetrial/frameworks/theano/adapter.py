"""Theano on the CPU: one compiled function per verb, everything it changes in shared variables."""

from symbolic_adapter import SymbolicAdapter
from timetrial_adapter import bias_name, blas_threads, pair, weight_name


def _dense(node, weights, x):
    y = tensor.dot(x, weights[weight_name(node)].T)
    return y + weights[bias_name(node)] if bias_name(node) else y


def _conv2d(node, weights, x):
    weight, border, stride = weights[weight_name(node)], pair(node, "padding"), pair(node, "stride")
    y = tensor.nnet.conv2d(x, weight, border_mode=border, subsample=stride, filter_flip=False)
    return y + weights[bias_name(node)].dimshuffle("x", 0, "x", "x") if bias_name(node) else y


def _max_pool2d(node, _, x):
    return _pool(node, x, "max")


def _avg_pool2d(node, _, x):
    return _pool(node, x, "average_inc_pad")  # padded zeros count


def _pool(node, x, mode):
    window, stride, border = (pair(node, key) for key in ("kernel", "stride", "padding"))
    return pool_2d(x, ws=window, ignore_border=True, stride=stride, pad=border, mode=mode)


# Functions of (node, weights by the job's names, the layer's inputs).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda _node, _weights, x: tensor.nnet.relu(x),
    "tanh": lambda _node, _weights, x: tensor.tanh(x),
    "sigmoid": lambda _node, _weights, x: tensor.nnet.sigmoid(x),
    "flatten": lambda _node, _weights, x: x.flatten(2),
    "dropout": lambda _node, _weights, x, mask=None: x if mask is None else x * mask,
    "add": lambda _node, _weights, x, *more: sum(more, x),
    "concat": lambda _node, _weights, *inputs: tensor.concatenate(inputs, axis=1),
}


def _softmax_cross_entropy(prediction, labels, *_):
    return tensor.nnet.categorical_crossentropy(tensor.nnet.softmax(prediction), labels).mean()


def _squared_error(prediction, labels, _, classes):
    target = tensor.extra_ops.to_one_hot(labels, classes, dtype="float32")
    return tensor.sqr(prediction - target).mean()


# Functions of (prediction, labels, batch size, classes).
LOSSES = {"softmax_cross_entropy": _softmax_cross_entropy, "squared_error": _squared_error}


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
        return {
            "theano.blas.ldflags": theano.config.blas.ldflags,
            "theano.openmp": theano.config.openmp,
            "theano.cxx": theano.config.cxx,
        }

    def _share(self, array, borrow=False):
        return theano.shared(array, borrow=borrow)

    def _compile(self, outputs, updates=()):
        return theano.function([], outputs, updates=list(updates))

    def _gradients_of(self, loss, weights):
        return tensor.grad(loss, weights)

    def _layer(self, node, *inputs):
        return LAYERS[node.kind](node, self._weights, *inputs)

    def _loss_of(self, prediction):
        kind = self._job.node(self._job.loss).kind
        return LOSSES[kind](prediction, self.labels, self._job.batch_size, self._job.classes)

    def _sqrt(self, x):
        return tensor.sqrt(x)

    def _maximum(self, x, y):
        return tensor.maximum(x, y)
