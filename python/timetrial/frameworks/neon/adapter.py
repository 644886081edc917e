"""Neon on its NumPy backend: images as columns (features, N), layers in a Sequential, its own momentum."""

import numpy as np
from timetrial_adapter import BaseAdapter, bias_name, blas_threads, one_hot, pair, weight_name


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    def load(self, settings):
        """Imports Neon; NumPy's BLAS has read its number of threads from the environment by then."""
        global Array, Cost, GradientDescentMomentum, Model, gen_backend, neon, nl, nt
        try:
            import neon
        except SystemExit:  # what Neon does without the file that its `make` writes
            raise ImportError("this Neon checkout lacks neon/version.py: run make in it") from None
        from neon import layers as nl
        from neon import transforms as nt
        from neon.backends import gen_backend
        from neon.initializers import Array
        from neon.models import Model
        from neon.optimizers import GradientDescentMomentum
        from neon.transforms.cost import Cost

        self.version = neon.__version__
        self.library = "Neon {}".format(neon.__version__)

    def read_settings(self):
        """NumPy's BLAS is asked: it is the only part of Neon's CPU backend that has threads."""
        return {"threads": blas_threads("libopenblas")}

    def facts(self):
        """Neon's version, with its commit."""
        return {"neon.version": neon.__version__, "numpy.version": np.__version__}

    def build(self, job, batch):
        """The model with the job's weights, the cost and memory for a batch."""
        images, labels = batch[job.sources[0]], batch[job.target]
        self._job, self._labels = job, labels
        self._rows = images.reshape(job.batch_size, -1)
        be = self._be = gen_backend("cpu", batch_size=job.batch_size)
        chain = _chain(job)
        self._places, layers = {}, []
        for node in chain:
            made = _make_layers(node, job)
            layers += made
            if node.parameters:
                self._places[weight_name(node)] = made[0]
            if bias_name(node):
                self._places[bias_name(node)] = made[1]
        if not layers or not layers[0].owns_output:
            raise ImportError("Neon's Sequential must begin with weights or a pooling: others work in place")
        self._model = Model(layers=layers)
        squared = job.node(job.loss).kind == "squared_error"
        self._softmax = None if squared else nt.Softmax()
        self._cost = nl.GeneralizedCost(costfunc=_squared_error() if squared else nt.CrossEntropyMulti())
        shape = job.inputs[job.sources[0]].shape[1:]
        self._model.initialize(tuple(shape) if len(shape) == 3 else shape[0], self._cost)
        self._images = be.empty((self._rows.shape[1], job.batch_size))
        self._targets = be.empty((job.classes, job.batch_size))
        self._probabilities = be.empty((job.classes, job.batch_size))
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        for name, layer in self._places.items():
            layer.W[:] = _to_neon(np.array(self._job.parameters[name]))
            layer.states = []
        self._optimizer = GradientDescentMomentum(
            self._job.optimizer["learning_rate"],
            self._job.optimizer["momentum"],
            wdecay=self._job.optimizer["weight_decay"],
        )

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        loss = self.gradient()
        self._optimizer.optimize(self._model.layers_to_optimize, epoch=0)
        return loss

    def gradient(self):
        """The same without update; gradients stay in the layers."""
        self._targets[:] = one_hot(self._labels, self._job.classes).T
        prediction = self.forward(inference=False)
        if self._softmax is not None:
            # Its derivative is part of the cost's. Not in place, so that the prediction stays.
            self._probabilities[:] = self._softmax(prediction)
            prediction = self._probabilities
        loss = self._cost.get_cost(prediction, self._targets)
        self._model.bprop(self._cost.get_errors(prediction, self._targets))
        return float(loss)

    def forward(self, inference=True):
        """Inference; the prediction as columns (classes, N)."""
        self._images[:] = self._rows.T
        return self._model.fprop(self._images, inference)

    def evaluate(self):
        """Inference between training steps."""
        return self.prediction(self.forward())

    def prediction(self, result):
        """Neon's samples are columns."""
        return result.get().T

    def parameters(self):
        """Name -> array."""
        return {name: self._from_neon(name, layer.W) for name, layer in self._places.items()}

    def gradients(self):
        """Of the last step. Neon's are sums over the batch; its optimizer divides them."""
        return {
            name: self._from_neon(name, layer.dW) / self._job.batch_size
            for name, layer in self._places.items()
        }

    def states(self):
        """Neon's have the learning rate in them, and point downwards."""
        rate = -self._job.optimizer["learning_rate"]
        return {
            name + ".velocity": self._from_neon(name, layer.states[0]) / rate
            for name, layer in self._places.items()
            if layer.states
        }

    def _from_neon(self, name, tensor):
        shape = self._job.parameters[name].shape
        array = tensor.get()
        if len(shape) == 4:
            return array.reshape(shape[1:] + shape[:1]).transpose(3, 0, 1, 2)
        return array.reshape(shape)


def _to_neon(array):
    """Kernels as (C*R*S, K), biases as columns."""
    if array.ndim == 4:
        return np.ascontiguousarray(array.transpose(1, 2, 3, 0)).reshape(-1, array.shape[0])
    return array.reshape(array.shape[0], -1)


def _chain(job):
    """The layers without the loss; Neon's Sequential knows no other order."""
    nodes = [node for node in job.nodes if node.name != job.loss]
    for node, before in zip(nodes, [job.sources[0]] + [node.name for node in nodes]):
        if node.inputs != [before]:
            words = "this adapter of Neon drives chains only, and '{}' follows {}"
            raise ImportError(words.format(node.name, ", ".join(node.inputs)))
    return nodes


def _make_layers(node, job):
    """One node as Neon's layers: biases are layers of their own. Parameters are set by reset()."""
    a = node.attributes
    if node.kind == "flatten":
        return []  # images are columns already, channel by channel
    if node.kind in ("relu", "tanh", "sigmoid"):
        make = {"relu": nt.Rectlin, "tanh": nt.Tanh, "sigmoid": nt.Logistic}[node.kind]
        return [nl.Activation(make())]
    initial = {name: Array(_to_neon(np.array(job.parameters[name]))) for name, _ in node.parameters}
    bias = [nl.Bias(init=initial[bias_name(node)])] if bias_name(node) else []
    if node.kind == "dense":
        return [nl.Linear(a["units"], init=initial[weight_name(node)]), *bias]
    steps = dict(zip(("str_h", "str_w"), pair(node, "stride")))
    padding = dict(zip(("pad_h", "pad_w"), pair(node, "padding")))
    if node.kind == "conv2d":
        shape = (*pair(node, "kernel"), a["channels"])
        weight = initial[weight_name(node)]
        return [nl.Convolution(shape, strides=steps, padding=padding, init=weight), *bias]
    if node.kind == "max_pool2d":
        return [nl.Pooling(pair(node, "kernel"), op="max", strides=steps, padding=padding)]
    make = _padded_average() if any(pair(node, "padding")) else nl.Pooling
    return [make(pair(node, "kernel"), op="avg", strides=steps, padding=padding)]


def _padded_average():
    """Neon leaves padded cells out of an average; here they count as zeros."""

    class PaddedAverage(nl.Pooling):
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


def _squared_error():
    """Neon's own MeanSquared is half of this."""

    class SquaredError(Cost):
        def __call__(self, y, t):
            return self.be.mean(self.be.square(y - t), axis=0)

        def bprop(self, y, t):
            return (y - t) * (2.0 / y.shape[0])

    return SquaredError()
