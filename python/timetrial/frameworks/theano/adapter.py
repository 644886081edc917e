"""Theano on the CPU: one compiled function per verb, everything it changes in shared variables."""

import numpy as np
from timetrial_adapter import BaseAdapter, bias_name, blas_threads, pair, weight_name


class Adapter(BaseAdapter):
    """A function is compiled when it is first needed: the task's own in build()."""

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

    def build(self, job, images, labels):
        """The symbolic network on the batch's own memory."""
        self._job, self._functions = job, {}
        self.images = theano.shared(images, borrow=True)
        self.labels = theano.shared(labels, borrow=True)
        self._weights = {name: theano.shared(np.array(v), name) for name, v in job.parameters.items()}
        zeros = {name: np.zeros_like(v) for name, v in job.parameters.items()}
        self._gradients = {name: theano.shared(v) for name, v in zeros.items()}
        self._velocities = {name: theano.shared(v) for name, v in zeros.items()}
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
        """Of every layer, on the current batch, by a function of its own."""
        names = [name for name in self._values if name != "images"]
        return dict(zip(names, theano.function([], [self._values[name] for name in names])()))

    def _function(self, verb):
        if verb not in self._functions:
            self._functions[verb] = getattr(self, "_compile_" + verb)()
        return self._functions[verb]

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
        return theano.function([], self._loss, updates=updates)

    def _compile_gradient(self):
        updates = [(self._gradients[name], gradient) for name, gradient in self._symbolic_gradients()]
        return theano.function([], self._loss, updates=updates)

    def _compile_forward(self):
        return theano.function([], self._values[self._job.output])

    def _symbolic_gradients(self):
        return list(zip(self._weights, tensor.grad(self._loss, list(self._weights.values()))))

    def _loss_of(self, prediction):
        if self._job.node(self._job.loss).kind == "softmax_cross_entropy":
            return tensor.nnet.categorical_crossentropy(tensor.nnet.softmax(prediction), self.labels).mean()
        target = tensor.extra_ops.to_one_hot(self.labels, self._job.classes, dtype="float32")
        return tensor.sqr(prediction - target).mean()

    def _layer(self, node, x):
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
