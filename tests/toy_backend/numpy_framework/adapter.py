"""A framework in NumPy whose layers are flatten, dense, and `center` of gate.py, which keeps a state."""

import numpy as np
from timetrial_adapter import BaseAdapter


class Adapter(BaseAdapter):
    """Of the network `whitened`: flatten, center, dense, softmax_cross_entropy."""

    layers = ("flatten", "dense", "center", "softmax_cross_entropy")
    version = np.__version__
    library = "NumPy"

    def load(self, settings):
        """Nothing more to import."""

    def build(self, job, batch):
        """Keeps the batch's own memory."""
        self.job, self.images, self.labels = job, batch["images"], batch["labels"]
        ((self.mean_name, _),) = job.node("center").states
        self.reset()

    def reset(self):
        """Initial values, of states too."""
        self.values = {name: np.array(value) for name, value in self.job.parameters.items()}
        self.velocity = {name: np.zeros_like(value) for name, value in self.values.items()}
        self.mean = np.array(self.job.states[self.mean_name])

    def step(self):
        """SGD with momentum."""
        loss = self.gradient()
        rule = self.job.optimizer
        for name, value in self.values.items():
            v = self.velocity[name]
            v *= np.float32(rule["momentum"])
            v += self.found[name] + np.float32(rule["weight_decay"]) * value
            value -= np.float32(rule["learning_rate"]) * v
        return loss

    def gradient(self):
        """Of this batch."""
        x = self.images.reshape(len(self.images), -1)
        mean = x.mean(axis=0)
        self.mean += np.float32(0.1) * (mean - self.mean)
        logits = self._dense(x - mean)
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = shifted / shifted.sum(axis=1, keepdims=True)
        rows = np.arange(len(p))
        loss = -np.log(p[rows, self.labels]).mean()
        p[rows, self.labels] -= 1
        p /= len(p)
        self.found = {"fc.weight": p.T @ (x - mean), "fc.bias": p.sum(axis=0)}
        return float(loss)

    def forward(self):
        """Inference: the running mean."""
        return self._dense(self.images.reshape(len(self.images), -1) - self.mean)

    def evaluate(self):
        """The same."""
        return self.forward()

    def parameters(self):
        """Name -> array."""
        return self.values

    def gradients(self):
        """Of the last step."""
        return self.found

    def states(self):
        """Of the optimizer."""
        return {name + ".velocity": value for name, value in self.velocity.items()}

    def layer_states(self):
        """Of the layer."""
        return {self.mean_name: self.mean}

    def _dense(self, x):
        return x @ self.values["fc.weight"].T + self.values["fc.bias"]
