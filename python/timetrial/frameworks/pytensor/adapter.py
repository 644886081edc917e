"""PyTensor on the CPU: one compiled function per verb, everything it changes in shared variables.

It has no layers of its own: a convolution is a matrix product over patches, pooling is arithmetic on slices.
"""

import numpy as np
from timetrial_adapter import BaseAdapter, bias_name, blas_threads, pair, weight_name

_MODES = {"numba": "NUMBA", "c": "CVM"}  # ours -> PyTensor's


class Adapter(BaseAdapter):
    """Modes name what compiles: `numba` or `c`. A function is compiled when it is first needed: the task's
    own in build()."""

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

    def build(self, job, images, labels):
        """The symbolic network on the batch's own memory."""
        self._job, self._functions = job, {}
        self.images, self.labels = _share(images, borrow=True), _share(labels, borrow=True)
        self._weights = {name: _share(np.array(v)) for name, v in job.parameters.items()}
        self._gradients = {name: _share(np.zeros_like(v)) for name, v in job.parameters.items()}
        self._velocities = {name: _share(np.zeros_like(v)) for name, v in job.parameters.items()}
        self._values = {"images": self.images}
        for node in job.nodes:
            if node.name != job.loss:
                self._values[node.name] = self._layer(node, self._values[node.inputs[0]])
        self._loss = self._loss_of(self._values[job.output])
        self.reset()
        self._function({"train": "step"}.get(job.task, job.task))

    def reset(self):
        """Initial weights, empty optimizer."""
        for name, value in self._job.parameters.items():
            self._weights[name].set_value(np.array(value))
            self._velocities[name].set_value(np.zeros_like(value))

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        return float(self._function("step")())

    def gradient(self):
        """The same without update."""
        return float(self._function("gradient")())

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._function("forward")()

    def evaluate(self):
        """Inference between training steps."""
        return self.forward()

    def parameters(self):
        """Name -> array."""
        return {name: shared.get_value() for name, shared in self._weights.items()}

    def gradients(self):
        """Of the last gradient(): step() keeps none."""
        return {name: shared.get_value() for name, shared in self._gradients.items()}

    def velocities(self):
        """The optimizer's momentum."""
        return {name + ".velocity": shared.get_value() for name, shared in self._velocities.items()}

    def activations(self):
        """Of every layer, on the current batch. Interpreted, because Numba would compile for minutes."""
        names = [name for name in self._values if name != "images"]
        outputs = [self._values[name] for name in names]
        return dict(zip(names, pytensor.function([], outputs, mode="FAST_COMPILE")()))

    def _function(self, verb):
        if verb not in self._functions:
            self._functions[verb] = getattr(self, "_compile_" + verb)()
        return self._functions[verb]

    def _compile(self, outputs, updates=()):
        return pytensor.function([], outputs, updates=list(updates), mode=_MODES[self.mode])

    def _compile_step(self):
        rule = {key: np.float32(self._job.optimizer[key]) for key in ("momentum", "weight_decay")}
        rate = np.float32(self._job.optimizer["learning_rate"])
        updates = []
        for name, gradient in self._symbolic_gradients():
            weight, change = self._weights[name], gradient
            if rule["weight_decay"]:
                change = change + rule["weight_decay"] * weight
            if rule["momentum"]:
                change = rule["momentum"] * self._velocities[name] + change
                updates.append((self._velocities[name], change))
            updates.append((weight, weight - rate * change))
        return self._compile(self._loss, updates)

    def _compile_gradient(self):
        return self._compile(self._loss, [(self._gradients[n], g) for n, g in self._symbolic_gradients()])

    def _compile_forward(self):
        return self._compile(self._values[self._job.output])

    def _symbolic_gradients(self):
        return list(zip(self._weights, pytensor.grad(self._loss, list(self._weights.values()))))

    def _loss_of(self, prediction):
        classes = self._job.classes
        target = pt.eq(self.labels[:, None], np.arange(classes)).astype("float32")
        if self._job.node(self._job.loss).kind == "softmax_cross_entropy":
            return -(log_softmax(prediction, axis=1) * target).sum() / np.float32(self._job.batch_size)
        return pt.sqr(prediction - target).sum() / np.float32(self._job.batch_size * classes)

    def _layer(self, node, x):
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


def _share(array, borrow=False):
    return pytensor.shared(array, shape=array.shape, borrow=borrow)


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
