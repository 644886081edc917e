"""Neon on its NumPy backend: images as columns (features, N), layers in a Sequential, its own momentum."""

import numpy as np
from neon_network import LAYERS, LOSSES, chain, make_layers, to_neon
from timetrial_adapter import (
    EVENLY_PADDED,
    UNDILATED,
    UNGROUPED,
    BaseAdapter,
    bias_name,
    blas_threads,
    one_hot,
    weight_name,
)

LIMITS = {"conv2d": {**UNGROUPED, **UNDILATED, **EVENLY_PADDED}}


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS

    def load(self, settings):
        """Imports Neon; NumPy's BLAS has read its number of threads from the environment by then."""
        global GradientDescentMomentum, Model, gen_backend, neon
        try:
            import neon
        except SystemExit:  # what Neon does without the file that its `make` writes
            raise ImportError("this Neon checkout lacks neon/version.py: run make in it") from None
        import neon.layers
        import neon.transforms
        from neon.backends import gen_backend
        from neon.models import Model
        from neon.optimizers import GradientDescentMomentum

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
        self._places, layers = {}, []
        for node in chain(job):
            made = make_layers(neon, node, job)
            layers += made
            if node.parameters:
                self._places[weight_name(node)] = made[0]
            if bias_name(node):
                self._places[bias_name(node)] = made[1]
        if not layers or not layers[0].owns_output:
            raise ImportError("Neon's Sequential must begin with weights or a pooling: others work in place")
        self._model = Model(layers=layers)
        self._softmax, cost = LOSSES[job.node(job.loss).kind](neon)
        self._cost = neon.layers.GeneralizedCost(costfunc=cost)
        shape = job.inputs[job.sources[0]].shape[1:]
        self._model.initialize(tuple(shape) if len(shape) == 3 else shape[0], self._cost)
        self._images = be.empty((self._rows.shape[1], job.batch_size))
        self._targets = be.empty((job.classes, job.batch_size))
        self._probabilities = be.empty((job.classes, job.batch_size))
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        for name, layer in self._places.items():
            layer.W[:] = to_neon(np.array(self._job.parameters[name]))
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
