"""SINGA on the CPU: its autograd operators and its SGD."""

import numpy as np
from singa_repair import repair
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


def _dense(_kept, _node, value, weight, bias):
    product = autograd.matmul(value, weight)
    return product if bias is None else autograd.add_bias(product, bias)


def _conv2d(kept, node, value, weight, bias):
    if node.name not in kept:
        ends = (value.shape[1], node.attributes["channels"])
        kept[node.name] = singa_wrap.ConvHandle(value.data, *_window(node), *ends, bias is not None, 1)
    return autograd.conv2d(kept[node.name], value, weight, bias)


def _max_pool2d(kept, node, value, *_):
    if node.name not in kept:
        kept[node.name] = singa_wrap.PoolingHandle(value.data, *_window(node), True)
    return autograd.pooling_2d(kept[node.name], value)


def _avg_pool2d(kept, node, value, *_):
    if node.name not in kept:
        handle = singa_wrap.PoolingHandle(value.data, *_window(node), False)
        kept[node.name] = handle, _shares(node, value)
    handle, shares = kept[node.name]
    mean = autograd.pooling_2d(handle, value)
    return mean if shares is None else autograd.mul(mean, shares)


def _window(node):
    return pair(node, "kernel"), pair(node, "stride"), pair(node, "padding")


def _shares(node, value):
    """SINGA's average leaves padded zeros out, ours counts them: the share of each window that is image."""
    if pair(node, "padding") == (0, 0):
        return None
    shares = 1.0
    for axis in range(2):
        kernel, stride, padding = (pair(node, key)[axis] for key in ("kernel", "stride", "padding"))
        starts = np.arange(node.shape[2 + axis]) * stride - padding
        inside = np.minimum(starts + kernel, value.shape[2 + axis]) - np.maximum(starts, 0)
        shares = np.multiply.outer(shares, inside / float(kernel))
    shares = np.ascontiguousarray(np.broadcast_to(shares, node.shape), np.float32)
    return tensor.Tensor(data=shares, requires_grad=False)


# Functions of (what lasts from step to step, node, the layer's input, its weight or None, its bias or None).
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "relu": lambda _kept, _node, value, *_: autograd.relu(value),
    "tanh": lambda _kept, _node, value, *_: autograd.tanh(value),
    "sigmoid": lambda _kept, _node, value, *_: autograd.sigmoid(value),
    "flatten": lambda _kept, _node, value, *_: autograd.flatten(value),
}

# Functions of the number of classes that give SINGA's loss, and by what it and its gradient are multiplied:
# mse_loss halves the squares and divides them by N alone.
LOSSES = {
    "softmax_cross_entropy": lambda _: (autograd.softmax_cross_entropy, 1.0),
    "squared_error": lambda classes: (autograd.mse_loss, 2.0 / classes),
}

LIMITS = {"conv2d": {**UNGROUPED, **UNDILATED, **EVENLY_PADDED}}


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS

    def load(self, settings):
        """Imports singa, which takes its threads from OMP_NUM_THREADS, and adds what the wheel lacks."""
        global autograd, opt, singa_wrap, tensor
        import singa
        from singa import _singa_wrap, autograd, opt, singa_wrap, tensor

        repair(singa_wrap, _singa_wrap.__file__)
        self.version = singa.__version__
        self.library = "SINGA {}".format(singa.__version__)

    def read_settings(self):
        """SINGA has no getter for threads; the OpenMP runtime in its wheel has. Its OpenBLAS is serial."""
        return {"threads": openmp_threads("libgomp")}

    def facts(self):
        """What the wheel, which cannot train as it comes, was given."""
        return {"singa.repaired": "copies from and to NumPy, division in place"}

    def build(self, job, batch):
        """Tensors for the batch, which SINGA copies, and the handles of the windowed layers."""
        images, labels = batch[job.sources[0]], batch[job.target]
        self._job = job
        self._images, self._labels = images, labels
        self.images = tensor.Tensor(data=images, requires_grad=False)
        self.targets = tensor.Tensor(data=one_hot(labels, job.classes), requires_grad=False)
        self._loss, self._scale = LOSSES[job.node(job.loss).kind](job.classes)
        self._kept = {}
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        self.weights = {
            name: tensor.Tensor(data=_turned(np.array(value)), stores_grad=True, name=name)
            for name, value in self._job.parameters.items()
        }
        given = self._job.optimizer
        self.optimizer = opt.SGD(
            lr=float(given["learning_rate"]),
            momentum=float(given["momentum"]),
            weight_decay=float(given["weight_decay"]),
        )
        self._gradients = {}

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        loss = self.gradient()
        for name, gradient in self._gradients.items():
            self.optimizer.apply(name, self.weights[name], gradient)
        self.optimizer.step()
        return loss

    def gradient(self):
        """The same without update; gradients are kept."""
        autograd.training = True
        loss = self._loss(self._values()[self._job.output], self._take_targets())
        self._gradients = {w.name: gradient for w, gradient in autograd.backward(loss, self._scale)}
        return float(tensor.to_numpy(loss)) * self._scale

    def forward(self):
        """Inference; the prediction (N x classes)."""
        autograd.training = False
        return self._values()[self._job.output]

    def evaluate(self):
        """Inference between training steps."""
        return self.prediction(self.forward())

    def prediction(self, result):
        """A tensor's."""
        return tensor.to_numpy(result)

    def parameters(self):
        """Name -> array."""
        return {name: _turned(tensor.to_numpy(weight)) for name, weight in self.weights.items()}

    def gradients(self):
        """Of the last step."""
        return {name: _turned(tensor.to_numpy(found)) for name, found in self._gradients.items()}

    def states(self):
        """The optimizer's moments."""
        moments = self.optimizer.moments
        return {name + ".velocity": _turned(tensor.to_numpy(moments[name])) for name in moments}

    def activations(self):
        """Of every layer, on the current batch."""
        autograd.training = False
        values = self._values()
        return {name: tensor.to_numpy(values[name]) for name in values if name not in self._job.inputs}

    def _take_targets(self):
        self.targets.copy_from_numpy(one_hot(self._labels, self._job.classes))
        return self.targets

    def _values(self):
        """Name of a layer -> what it gives, up to the loss."""
        self.images.copy_from_numpy(self._images)
        values = {self._job.sources[0]: self.images}
        for node in self._job.nodes:
            if node.name != self._job.loss:
                weight, bias = self.weights.get(weight_name(node)), self.weights.get(bias_name(node))
                layer = LAYERS[node.kind]
                values[node.name] = layer(self._kept, node, values[node.inputs[0]], weight, bias)
        return values


def _turned(array):
    """Dense weights are (inputs, units) in SINGA, (units, inputs) in the job."""
    return np.ascontiguousarray(array.T) if array.ndim == 2 else array
