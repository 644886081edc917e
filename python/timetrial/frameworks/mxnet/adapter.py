"""MXNet on the CPU, in its three ways of programming: imperative and hybridized Gluon, and bound symbols."""

from mxnet_network import LAYERS, LOSSES, layer_values, mean_loss
from mxnet_sequences import LIMITS, path_of
from mxnet_updates import Updates
from timetrial_adapter import BaseAdapter, carried, is_recurrent, openmp_threads, path_facts
from timetrial_updates import OPTIMIZERS


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    several_inputs = True
    sequences = True
    optimizers = OPTIMIZERS

    def load(self, settings):
        """Imports mxnet, which takes the size of its OpenMP pool from OMP_NUM_THREADS once and for all."""
        global mx
        import mxnet as mx

        self.version = mx.__version__
        self.library = "MXNet {}".format(mx.__version__)

    def read_settings(self):
        """MXNet has no getter for its threads; the OpenMP runtime that it is linked to has."""
        return {
            "threads": openmp_threads("libgomp"),
            "mode": (self.mode, "the way in which the adapter built the network"),
        }

    def facts(self):
        """Which libraries were compiled in, from the versions that can tell (1.5 and later)."""
        found = {}
        for node in self._job.layers:
            if is_recurrent(node):
                found.update(path_facts(self._job, node, path_of(mx, node)))
        if hasattr(mx, "runtime"):
            features = mx.runtime.Features()
            on = sorted(name for name in features if features.is_enabled(name))
            found["mxnet.features"] = " ".join(on)
        return found

    def build(self, job, batch):
        """The network on arrays that share the batch's memory, or (before 1.5) are filled in each step."""
        self._job, self._updates = job, Updates(mx, job)
        memories = {name: batch[name] for name in (*job.sources, job.target)}
        arrays = {name: _array_on(memory) for name, memory in memories.items()}
        self._shares = all(array is not None for array in arrays.values())
        if not self._shares:
            arrays = {name: mx.nd.array(memory, dtype=memory.dtype) for name, memory in memories.items()}
        self._batch = [(memory, arrays[name]) for name, memory in memories.items()]
        self._inputs = {name: arrays[name] for name in job.sources}
        make = _Bound if self.mode == "symbolic" else _Gluon
        self.model = make(job, self._inputs, arrays[job.target], self.mode == "hybridized")
        self.reset()

    def reset(self):
        """Initial weights and states of layers, empty optimizer. By copyto: inference may leave a weight in a
        layout of oneDNN's, into which no array can be assigned."""
        for name, weight in self.model.weights.items():
            mx.nd.array(self._job.parameters[name]).copyto(weight)
        for name, state in self.model.kept.items():
            mx.nd.array(self._job.states[name]).copyto(state)
        self._updates.reset()
        self.model.use_optimizer(self._updates.optimizer)

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        self._take_batch()
        loss = self.model.loss_and_gradients()
        self._updates.before(self.model.gradients)
        self.model.update()
        mx.nd.waitall()  # the loss is there before the weights are
        return loss.asscalar()

    def gradient(self):
        """The same without update; gradients stay in the model."""
        self._take_batch()
        loss = self.model.loss_and_gradients()
        mx.nd.waitall()
        return loss.asscalar()

    def forward(self):
        """Inference; the prediction (N x classes)."""
        self._take_batch()
        prediction = self.model.predict()
        prediction.wait_to_read()
        return prediction

    def evaluate(self):
        """Inference between training steps."""
        return self.prediction(self.forward())

    def prediction(self, result):
        """An NDArray's."""
        return result.asnumpy()

    def wait(self):
        """MXNet queues its work."""
        mx.nd.waitall()

    def parameters(self):
        """Name -> array."""
        return {name: weight.asnumpy() for name, weight in self.model.weights.items()}

    def gradients(self):
        """Of the last step."""
        return {name: gradient.asnumpy() for name, gradient in self.model.gradients.items()}

    def layer_states(self):
        """Name -> array."""
        return {name: state.asnumpy() for name, state in self.model.kept.items()}

    def activations(self):
        """Of every layer, on the current batch. Copies of the states move instead of them."""
        self._take_batch()
        given = dict(self.model.weights, **{n: state.copy() for n, state in self.model.kept.items()})
        with mx.autograd.train_mode():
            values, _ = layer_values(mx.nd, self._job, self._inputs, given, learns=True)
        return {name: values[name].asnumpy() for name in values if name not in self._job.inputs}

    def states(self):
        """What the optimizer keeps."""
        found = {}
        for name, kept in zip(self.model.weights, self.model.optimizer_states()):
            if kept is not None:
                found.update(self._updates.states(name, kept))
        return found

    def _take_batch(self):
        if not self._shares:
            for memory, array in self._batch:
                array[:] = memory


class _Gluon(object):
    """A block and a trainer. Hybridized, the block runs as one graph with its memory laid out in advance."""

    def __init__(self, job, inputs, labels, hybridize):
        self._inputs, self._labels = list(inputs.values()), labels
        self._read = [array for name, array in inputs.items() if name not in job.masks]
        self._block, self._inference, self._loss = _make_blocks(job)
        self._block.initialize(ctx=mx.cpu())
        for block in (self._block, self._inference, self._loss):
            if hybridize:
                block.hybridize(static_alloc=True, static_shape=True)
        named = self._block.named_parameters
        self._parameters = {name: named[name] for name in job.parameters}
        self.weights = {name: p.data() for name, p in self._parameters.items()}
        self.kept = {name: named[name].data() for name in job.states}
        self.carried = carried(job)
        self.gradients = {name: p.grad() for name, p in self._parameters.items()}

    def use_optimizer(self, optimizer):
        # In our order, which its states keep: newer versions sort a dict by name.
        parameters = list(self._parameters.values())
        self._trainer = mx.gluon.Trainer(parameters, optimizer) if parameters else None

    def loss_and_gradients(self):
        with mx.autograd.record():
            prediction, *moved = _listed(self._block(*self._inputs))
            loss = self._loss(prediction, self._labels)
        loss.backward()
        _go_on(self, moved)
        return loss

    def update(self):
        self._trainer.step(1)  # by how much to divide the gradients: the loss is a mean already

    def predict(self):
        return self._inference(*self._read)

    def optimizer_states(self):
        states = self._trainer._updaters[0].states
        return [states.get(index) for index in range(len(self.weights))]


class _Bound(object):
    """Symbols bound to arrays: the graph that MXNet's first interface, the Module, runs."""

    def __init__(self, job, inputs, labels, _):
        self.weights = {name: mx.nd.zeros(value.shape) for name, value in job.parameters.items()}
        self.gradients = {name: mx.nd.zeros(value.shape) for name, value in job.parameters.items()}
        self.kept = {name: mx.nd.zeros(value.shape) for name, value in job.states.items()}
        variables = {name: mx.sym.Variable(name) for name in (*self.weights, *self.kept)}
        given = {name: mx.sym.Variable(name) for name in inputs}
        values, moved = layer_values(mx.sym, job, given, variables, learns=True)
        target = given[job.target] if job.target in given else mx.sym.Variable(job.target)
        loss = mx.sym.MakeLoss(mean_loss(mx.sym, job, values[job.output], target))
        self.carried = list(moved)
        loss = mx.sym.Group([loss, *moved.values()]) if moved else loss
        kept = {name: state for name, state in self.kept.items() if name not in moved}
        arguments = dict(self.weights, **inputs, **{name: self.kept[name] for name in moved})
        arguments[job.target] = labels
        wanted = {name: "write" if name in self.gradients else "null" for name in arguments}
        self._training = loss.bind(mx.cpu(), arguments, self.gradients, wanted, aux_states=kept)
        read = {name: given[name] for name in inputs if name not in job.masks}
        inferred, _ = layer_values(mx.sym, job, read, variables, learns=False)
        read = {name: arguments[name] for name in (*self.weights, *read)}
        self._inference = inferred[job.output].bind(mx.cpu(), read, grad_req="null", aux_states=kept)

    def use_optimizer(self, optimizer):
        self._updater = mx.optimizer.get_updater(optimizer)

    def loss_and_gradients(self):
        self._training.forward(is_train=True)
        self._training.backward()
        loss, *moved = self._training.outputs
        _go_on(self, moved)
        return loss

    def update(self):
        for index, name in enumerate(self.weights):
            self._updater(index, self.gradients[name], self.weights[name])

    def predict(self):
        return self._inference.forward(is_train=False)[0]

    def optimizer_states(self):
        return [self._updater.states.get(index) for index in range(len(self.weights))]


def _array_on(memory):
    """An NDArray on this memory; None where MXNet is too old. It makes what it is given read-only: a view."""
    return mx.nd.from_numpy(memory.view(), zero_copy=True) if hasattr(mx.nd, "from_numpy") else None


def _make_blocks(job):
    """The network with its parameters, the same as it infers, and the loss, as blocks. One that was compiled
    for a batch with masks takes none without, and one that carries states gives them too."""
    carries = carried(job)

    class Network(mx.gluon.HybridBlock):
        def __init__(self, names, learns, params=None):
            super(Network, self).__init__(params=params)
            self._names, self._learns = names, learns
            self.named_parameters = {
                name: self.params.get(name, shape=value.shape) for name, value in job.parameters.items()
            }
            for name, value in job.states.items():  # which no gradient is for
                given = {"shape": value.shape, "grad_req": "null", "differentiable": False}
                if learns or name not in carries:
                    self.named_parameters[name] = self.params.get(name, **given)
            for name, parameter in self.named_parameters.items():
                setattr(self, name, parameter)

        def hybrid_forward(self, ops, *inputs, **parameters):
            given = dict(zip(self._names, inputs))
            values, moved = layer_values(ops, job, given, parameters, self._learns)
            return [values[job.output], *moved.values()] if moved else values[job.output]

    class Loss(mx.gluon.HybridBlock):
        def hybrid_forward(self, ops, prediction, labels):
            return mean_loss(ops, job, prediction, labels)

    network, read = Network(job.sources, True), [name for name in job.sources if name not in job.masks]
    return network, Network(read, False, network.params) if job.masks or carries else network, Loss()


def _go_on(model, moved):
    """The states that a model carries: what they come to."""
    for name, value in zip(model.carried, moved):
        value.copyto(model.kept[name])


def _listed(given):
    """What a block gives: an array, or a list of them."""
    return given if isinstance(given, (list, tuple)) else [given]
