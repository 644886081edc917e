"""What adapters of Theano and its descendants share: a graph of symbols, a compiled function per verb, and
everything that changes in shared variables. Syntax and modules of Python 3.6.
"""

import numpy as np
import symbolic_sequences
from timetrial_adapter import BaseAdapter, Values, is_recurrent, path_facts
from timetrial_updates import OPTIMIZERS, Update


class SymbolicAdapter(BaseAdapter):
    """A function is compiled when it is first needed: the task's own in build().

    The framework's own part: _share(array, borrow), _compile(outputs, updates), _gradients_of(loss, weights),
    _symbols(way) as symbolic_sequences.py has them, _layer(node, values, x, *more) (in inference without
    masks), _loss_of(prediction), _sqrt(x) and _maximum(x, y).
    """

    optimizers = OPTIMIZERS
    several_inputs = True
    sequences = True
    ways = symbolic_sequences.WAYS

    def build(self, job, batch):
        """The symbolic network on the batch's own memory."""
        self._job, self._functions, self._shows = job, {}, None
        self._way = job.settings.get("lengths", self.ways[0])
        self._inputs = {name: self._share(batch[name], borrow=True) for name in job.sources}
        self.labels = self._share(batch[job.target], borrow=True)
        self._weights = {name: self._share(np.array(v)) for name, v in job.parameters.items()}
        self._gradients = {name: self._share(np.zeros_like(v)) for name, v in job.parameters.items()}
        self._moving = {name: self._share(np.array(v)) for name, v in job.states.items()}
        self._update = Update(job, self._sqrt, np.float32)
        self._kept = {
            name: {state: self._share(np.zeros_like(v)) for state in self._update.states}
            for name, v in job.parameters.items()
        }
        self._sizes = [self._share(np.array(size, np.float32)) for size in self._update.sizes(0)]
        self._values, self._moved = self._layers(job.sources, learns=True)
        read = [name for name in job.sources if name not in job.masks]
        differs = job.masks or job.states
        self._inferred = (self._layers(read, learns=False)[0] if differs else self._values)[job.output]
        self._loss = self._loss_of(self._values[job.output])
        self.reset()
        self._function({"train": "step"}.get(job.task, job.task))

    def _layers(self, inputs, learns):
        """Name -> symbol, of these inputs too; and what becomes of the states of layers."""
        tensors = Values(dict(self._weights, **self._moving), learns)
        tensors.symbols = self._symbols(self._way)
        values = {name: self._inputs[name] for name in inputs}
        for node in self._job.nodes:
            if node.name != self._job.loss:
                given = [values[name] for name in node.inputs if name in values]
                values[node.name] = self._layer(node, tensors, *given)
        return values, tensors.moved

    def reset(self):
        """Initial weights and states of layers, empty optimizer."""
        for name, value in self._job.states.items():
            self._moving[name].set_value(np.array(value))
        for name, value in self._job.parameters.items():
            self._weights[name].set_value(np.array(value))
            for state in self._kept[name].values():
                state.set_value(np.zeros_like(value))
        self._taken = 0

    def facts(self):
        """Which way recurrent layers go, by what their symbols are made of."""
        found = {}
        for node in self._job.layers:
            if is_recurrent(node):
                given = [self._inputs.get(name, self._values.get(name)) for name in node.inputs]
                path = symbolic_sequences.path_of(given, self._values[node.name])
                found.update(path_facts(self._job, node, path, way=self._way))
        return found

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        if self._update.changes:
            for shared, size in zip(self._sizes, self._update.sizes(self._taken)):
                shared.set_value(np.array(size, np.float32))
            self._taken += 1
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
        """What the optimizer keeps."""
        return {
            "{}.{}".format(name, state): shared.get_value()
            for name, kept in self._kept.items()
            for state, shared in kept.items()
        }

    def layer_states(self):
        """Name -> array."""
        return {name: shared.get_value() for name, shared in self._moving.items()}

    def activations(self):
        """Of every layer, on the current batch; states are as before."""
        if self._shows is None:
            names = [name for name in self._values if name not in self._job.inputs]
            self._shows = names, self._interpret([self._values[name] for name in names])
        names, function = self._shows
        return dict(zip(names, function()))

    def _interpret(self, outputs):
        """A function that is called a few times, and timed by nobody."""
        return self._compile(outputs)

    def _function(self, verb):
        if verb not in self._functions:
            self._functions[verb] = getattr(self, "_compile_" + verb)()
        return self._functions[verb]

    def _compile_step(self):
        """Sizes that stay are constants in it."""
        update = self._update
        rate, shrink = self._sizes if update.changes else map(np.float32, update.sizes(0))
        pairs, updates = self._symbolic_gradients(), []
        if update.clip_norm is not None:
            norm = self._sqrt(sum((gradient * gradient).sum() for _, gradient in pairs))
            factor = update.clip_norm / self._maximum(norm, update.clip_norm)
            pairs = [(name, gradient * factor) for name, gradient in pairs]
        for name, gradient in pairs:
            weight, kept = self._weights[name], self._kept[name]
            change, after = update.step(update.decayed(gradient, weight), kept, rate)
            updates += [(kept[state], value) for state, value in after.items()]
            updates.append((weight, (weight - shrink * weight if update.is_decoupled else weight) - change))
        return self._compile(self._loss, updates + self._moves())

    def _compile_gradient(self):
        found = [(self._gradients[name], gradient) for name, gradient in self._symbolic_gradients()]
        return self._compile(self._loss, found + self._moves())

    def _moves(self):
        return [(self._moving[name], value) for name, value in self._moved.items()]

    def _compile_forward(self):
        return self._compile(self._inferred)

    def _symbolic_gradients(self):
        return list(zip(self._weights, self._gradients_of(self._loss, list(self._weights.values()))))
