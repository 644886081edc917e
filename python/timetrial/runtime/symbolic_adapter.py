"""What adapters of Theano and its descendants share: a graph of symbols, a compiled function per verb, and
everything that changes in shared variables. Syntax and modules of Python 3.6.
"""

import numpy as np
from timetrial_adapter import BaseAdapter


class SymbolicAdapter(BaseAdapter):
    """A function is compiled when it is first needed: the task's own in build().

    The framework's own part: _share(array, borrow), _compile(outputs, updates), _gradients_of(loss, weights),
    _layer(node, x, *more), _loss_of(prediction).
    """

    def build(self, job, batch):
        """The symbolic network on the batch's own memory."""
        images, labels = batch[job.sources[0]], batch[job.target]
        self._job, self._functions = job, {}
        self.images, self.labels = self._share(images, borrow=True), self._share(labels, borrow=True)
        self._weights = {name: self._share(np.array(v)) for name, v in job.parameters.items()}
        self._gradients = {name: self._share(np.zeros_like(v)) for name, v in job.parameters.items()}
        self._velocities = {name: self._share(np.zeros_like(v)) for name, v in job.parameters.items()}
        self._values = {job.sources[0]: self.images}
        for node in job.nodes:
            if node.name != job.loss:
                self._values[node.name] = self._layer(node, *[self._values[name] for name in node.inputs])
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

    def states(self):
        """The optimizer's momentum."""
        return {name + ".velocity": shared.get_value() for name, shared in self._velocities.items()}

    def activations(self):
        """Of every layer, on the current batch."""
        names = [name for name in self._values if name not in self._job.inputs]
        return dict(zip(names, self._interpret([self._values[name] for name in names])()))

    def _interpret(self, outputs):
        """A function that is called once."""
        return self._compile(outputs)

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
        return self._compile(self._loss, updates)

    def _compile_gradient(self):
        return self._compile(self._loss, [(self._gradients[n], g) for n, g in self._symbolic_gradients()])

    def _compile_forward(self):
        return self._compile(self._values[self._job.output])

    def _symbolic_gradients(self):
        return list(zip(self._weights, self._gradients_of(self._loss, list(self._weights.values()))))
