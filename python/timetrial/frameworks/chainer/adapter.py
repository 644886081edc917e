"""Chainer on the CPU: links and functions on NumPy, or with iDeep under them."""

import copy

import numpy as np
from chainer_network import LAYERS, LOSSES, make_chain
from chainer_sequences import LIMITS, path_of
from chainer_updates import Updates
from timetrial_adapter import (
    BaseAdapter,
    blas_threads,
    is_recurrent,
    openmp_threads,
    path_facts,
    steps_of,
)
from timetrial_updates import OPTIMIZERS


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    several_inputs = True
    sequences = True
    ways = ("packed",)
    optimizers = OPTIMIZERS

    def load(self, settings):
        """Imports chainer. OpenBLAS and iDeep's OpenMP took their threads from the environment."""
        global chainer
        import chainer

        chainer.global_config.use_ideep = "auto" if self.mode == "ideep" else "never"
        self.version = chainer.__version__
        self.library = "Chainer {}".format(chainer.__version__)

    def read_settings(self):
        """Chainer has no getter for threads; the library that computes has. iDeep shows in the weights."""
        arrays = {type(parameter.array).__name__ for parameter in self.model.params()}
        found = "ideep" if "mdarray" in arrays else "numpy"
        return {
            "threads": openmp_threads("libiomp5") if found == "ideep" else blas_threads("/numpy"),
            "mode": (found, "type(parameter.array): {}".format(", ".join(sorted(arrays)))),
        }

    def facts(self):
        """NumPy computes where iDeep does not."""
        found = {"numpy.version": np.__version__}
        for node in self._job.layers:
            if is_recurrent(node):
                path = path_of(chainer, getattr(self.model, node.name), steps_of(self._job, node))
                found.update(path_facts(self._job, node, path, way="packed"))
        return found

    def build(self, job, batch):
        """The batch's own memory; the chain and the optimizer are made by reset()."""
        self._job, self.labels = job, batch[job.target]
        self._inputs = {name: batch[name] for name in job.sources}
        self._read = {name: array for name, array in self._inputs.items() if name not in job.masks}
        self._loss = LOSSES[job.node(job.loss).kind]
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        self.model = make_chain(chainer, self._job)
        if self.mode == "ideep":
            self.model.to_intel64()
        self._named = {}
        for node in self._job.nodes:
            theirs = {"weight": "gamma", "bias": "beta"} if node.states else {"weight": "W", "bias": "b"}
            for name, _ in node.parameters:
                link, own = getattr(self.model, node.name), name[len(node.name) + 1 :]
                self._named[name] = getattr(link, own if hasattr(link, own) else theirs[own])
        self._updates = Updates(chainer, self._job, self.model)

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        loss = self.gradient()
        self._updates.step()
        return loss

    def gradient(self):
        """The same without update; gradients stay in the parameters."""
        self.model.cleargrads()
        loss = self._loss(chainer.functions, self._values(self._inputs)[self._job.output], self.labels)
        loss.backward()
        return float(loss.array)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return self._values(self._read)[self._job.output]

    def evaluate(self):
        """Inference between training steps."""
        return self.prediction(self.forward())

    def prediction(self, result):
        """A variable's array."""
        return np.array(result.array)

    def parameters(self):
        """Name -> array."""
        return {name: np.array(parameter.array) for name, parameter in self._named.items()}

    def gradients(self):
        """Of the last step."""
        return {name: np.array(p.grad) for name, p in self._named.items() if p.grad is not None}

    def states(self):
        """What the optimizer keeps."""
        return self._updates.states(self._named)

    def layer_states(self):
        """Of batch normalizations, and of layers that go on from batch to batch."""
        return {
            "{}.{}".format(node.name, key): value
            for node in self._job.nodes
            if node.states
            for key, value in getattr(self.model, node.name).shown().items()
        }

    def activations(self):
        """Of every layer, on the current batch, by a copy whose states may move."""
        model, self.model = self.model, copy.deepcopy(self.model)
        with chainer.no_backprop_mode():
            values = self._values(self._inputs)
        self.model = model
        return {name: np.array(values[name].array) for name in values if name not in self._job.inputs}

    def _values(self, inputs):
        """Name of a layer -> what it gives, up to the loss."""
        values = dict(inputs)
        for node in self._job.nodes:
            if node.name != self._job.loss:
                inputs = [values[name] for name in node.inputs if name in values]
                values[node.name] = LAYERS[node.kind](chainer.functions, self.model, node, *inputs)
        return values
