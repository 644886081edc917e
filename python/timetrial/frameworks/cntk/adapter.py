"""CNTK on the CPU: a function, its criterion and a trainer."""

import numpy as np
from timetrial_adapter import (
    EVENLY_PADDED,
    UNDILATED,
    UNGROUPED,
    BaseAdapter,
    bias_name,
    one_hot,
    openmp_threads,
    pair,
    weight_name,
)


def _dense(_, value, weight, bias):
    product = cntk.times(value, weight)
    return product if bias is None else product + bias


def _conv2d(node, value, weight, bias):
    strides = (1, *pair(node, "stride"))
    product = cntk.convolution(weight, _padded(node, value, 0.0), strides=strides, auto_padding=[False])
    return product if bias is None else product + cntk.reshape(bias, (-1, 1, 1))


def _max_pool2d(node, value, *_):
    lowest = float(np.finfo(np.float32).min)
    return cntk.pooling(_padded(node, value, lowest), cntk.MAX_POOLING, *_window(node))


def _avg_pool2d(node, value, *_):
    return cntk.pooling(_padded(node, value, 0.0), cntk.AVG_POOLING, *_window(node))


def _window(node):
    return pair(node, "kernel"), pair(node, "stride")


def _padded(node, value, constant):
    """CNTK's own padding is all or nothing: ours is an operator before."""
    h, w = pair(node, "padding")
    if (h, w) == (0, 0):
        return value
    return cntk.pad(value, [(0, 0), (h, h), (w, w)], cntk.CONSTANT_PAD, constant)


# Functions of (node, the layer's input, its weight or None, its bias or None).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda _node, value, *_: cntk.relu(value),
    "tanh": lambda _node, value, *_: cntk.tanh(value),
    "sigmoid": lambda _node, value, *_: cntk.sigmoid(value),
    "flatten": lambda _node, value, *_: cntk.reshape(value, (-1,)),
}

# Functions of (prediction, one-hot labels, classes).
LOSSES = {
    "softmax_cross_entropy": lambda value, target, _: cntk.cross_entropy_with_softmax(value, target),
    "squared_error": lambda value, target, classes: cntk.squared_error(value, target) / float(classes),
}

LIMITS = {"conv2d": {**UNGROUPED, **UNDILATED, **EVENLY_PADDED}}


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS

    def load(self, settings):
        """Imports cntk, which needs the Open MPI libraries in the folder that the user named.

        It sets the size of its OpenMP pool itself, whatever OMP_NUM_THREADS says: it has to be told.
        """
        global cntk
        import cntk

        if "threads" in settings:
            cntk.cntk_py.set_max_num_cputhreads(int(settings["threads"]))
        cntk.device.try_set_default_device(cntk.device.cpu())
        self.version = cntk.__version__
        self.library = "CNTK {}".format(cntk.__version__)

    def read_settings(self):
        """What the OpenMP runtime that CNTK brings was told by it."""
        return {"threads": openmp_threads("libiomp5")}

    def build(self, job, batch):
        """The graph, on variables that are fed with the batch."""
        images, labels = batch[job.sources[0]], batch[job.target]
        self._job = job
        self._images, self._labels = images, labels
        self._input = cntk.input_variable(images.shape[1:], name=job.sources[0])
        self._target = cntk.input_variable(job.classes, name="labels")
        self.weights = {
            name: cntk.Parameter(init=_turned(np.array(value)), name=name)
            for name, value in job.parameters.items()
        }
        self._values = self._make_graph()
        self.model = self._values[job.output]
        self.loss = LOSSES[job.node(job.loss).kind](self.model, self._target, job.classes)
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        for name, weight in self.weights.items():
            weight.value = _turned(np.array(self._job.parameters[name]))
        given = self._job.optimizer
        # Both schedules are for the whole batch; velocities gather all of a gradient (no unit gain).
        batch = self._job.batch_size
        self._learner = cntk.momentum_sgd(
            list(self.weights.values()),
            cntk.learning_parameter_schedule(given["learning_rate"], minibatch_size=batch),
            cntk.momentum_schedule(given["momentum"], minibatch_size=batch),
            unit_gain=False,
            l2_regularization_weight=given["weight_decay"],
        )
        self._trainer = cntk.Trainer(self.model, (self.loss, None), [self._learner])
        self._gradients = {}

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        self._trainer.train_minibatch(self._batch())
        return self._trainer.previous_minibatch_loss_average

    def gradient(self):
        """The same without update; gradients are kept."""
        found, losses = self.loss.grad(
            self._batch(), wrt=list(self.weights.values()), outputs=[self.loss.output]
        )
        self._gradients = {parameter.name: value for parameter, value in found.items()}
        return float(np.mean(losses))

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self.model.eval({self._input: self._images})

    def evaluate(self):
        """Inference between training steps."""
        return self.forward()

    def parameters(self):
        """Name -> array."""
        return {name: _turned(weight.value) for name, weight in self.weights.items()}

    def gradients(self):
        """Of the last step. CNTK adds up over the batch; the job's loss is a mean."""
        return {name: _turned(value) / self._job.batch_size for name, value in self._gradients.items()}

    def activations(self):
        """Of every layer, on the current batch."""
        return {
            node.name: self._values[node.name].eval({self._input: self._images})
            for node in self._job.nodes
            if node.name != self._job.loss
        }

    def _batch(self):
        return {self._input: self._images, self._target: one_hot(self._labels, self._job.classes)}

    def _make_graph(self):
        """Name of a layer -> its function, up to the loss."""
        values = {self._job.sources[0]: self._input}
        for node in self._job.nodes:
            if node.name != self._job.loss:
                weight, bias = self.weights.get(weight_name(node)), self.weights.get(bias_name(node))
                values[node.name] = LAYERS[node.kind](node, values[node.inputs[0]], weight, bias)
        return values


def _turned(array):
    """Dense weights are (inputs, units) in CNTK, (units, inputs) in the job."""
    return np.ascontiguousarray(array.T) if array.ndim == 2 else array
