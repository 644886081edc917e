"""Theano on the CPU: one compiled function per verb, everything it changes in shared variables."""

from symbolic_adapter import SymbolicAdapter
from timetrial_adapter import JOINS, LAYERS, bias_name, blas_threads, pair, weight_name


class Adapter(SymbolicAdapter):
    """Layers and loss are Theano's own; all else is in symbolic_adapter.py."""

    layers = LAYERS + JOINS

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

    def _loss_of(self, prediction):
        if self._job.node(self._job.loss).kind == "softmax_cross_entropy":
            return tensor.nnet.categorical_crossentropy(tensor.nnet.softmax(prediction), self.labels).mean()
        target = tensor.extra_ops.to_one_hot(self.labels, self._job.classes, dtype="float32")
        return tensor.sqr(prediction - target).mean()

    def _layer(self, node, x, *more):
        if node.kind == "add":
            return sum(more, x)
        if node.kind == "concat":
            return tensor.concatenate([x, *list(more)], axis=1)
        if node.kind == "dense":
            y = tensor.dot(x, self._weights[weight_name(node)].T)
            return y + self._weights[bias_name(node)] if bias_name(node) else y
        if node.kind == "conv2d":
            weight = self._weights[weight_name(node)]
            border, stride = pair(node, "padding"), pair(node, "stride")
            y = tensor.nnet.conv2d(x, weight, border_mode=border, subsample=stride, filter_flip=False)
            return y + self._weights[bias_name(node)].dimshuffle("x", 0, "x", "x") if bias_name(node) else y
        if node.kind in ("max_pool2d", "avg_pool2d"):
            kind = "max" if node.kind == "max_pool2d" else "average_inc_pad"  # padded zeros count
            window, stride, border = (pair(node, key) for key in ("kernel", "stride", "padding"))
            return pool_2d(x, ws=window, ignore_border=True, stride=stride, pad=border, mode=kind)
        if node.kind == "flatten":
            return x.flatten(2)
        return {"relu": tensor.nnet.relu, "tanh": tensor.tanh, "sigmoid": tensor.nnet.sigmoid}[node.kind](x)
