"""PaddlePaddle on the CPU: its layers, its SGD or Momentum; run as they come or as a static program."""

import contextlib

import numpy as np
from paddle_network import LAYERS, LOSSES, make_layers
from paddle_sequences import LIMITS, path_of
from paddle_updates import OPTIMIZERS, POWERS, Updates
from timetrial_adapter import BaseAdapter, is_recurrent, openmp_threads, path_facts, weight_name

_IN_ORDER = "FLAGS_enable_pir_in_executor_trace_run"  # operators one after another, in the main thread
_FREEING = "FLAGS_eager_delete_tensor_gb"  # below 0: a program's memory is kept from run to run


class Adapter(BaseAdapter):
    """Modes: `dynamic` runs operation by operation, `static` builds a program and runs it by an Executor."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    several_inputs = True
    sequences = True
    optimizers = OPTIMIZERS

    def load(self, settings):
        """Imports Paddle, which sets OMP_NUM_THREADS to 1 if it is not set."""
        global paddle
        import paddle

        if "threads" in settings:
            paddle.base.core.set_num_threads(int(settings["threads"]))
        if self.mode == "static":
            paddle.enable_static()
            if "threads" in settings:
                # Else its executor runs operators side by side, each with so many threads, beside one that
                # frees memory.
                paddle.set_flags({_IN_ORDER: True, _FREEING: -1.0})
        self.version = paddle.__version__
        self.library = "PaddlePaddle {}".format(paddle.__version__)

    def read_settings(self):
        """No getter for threads but OpenMP's: FLAGS_paddle_num_threads stays 1 whatever is set."""
        mode = "dynamic" if paddle.in_dynamic_mode() else "static"
        return {"mode": (mode, "paddle.in_dynamic_mode()"), "threads": openmp_threads("libgomp")}

    def facts(self):
        """Whether its oneDNN kernels are on (by default they are not), and how its executor works."""
        flags = paddle.get_flags(["FLAGS_use_onednn", _IN_ORDER, _FREEING])
        found = {"paddle." + name: value for name, value in flags.items()}
        for node in self._job.layers:
            if is_recurrent(node):
                found.update(path_facts(self._job, node, path_of(self._layers[node.name])))
        return found

    def build(self, job, batch):
        """The network on the batch's own memory."""
        self._job, self._static = job, self.mode == "static"
        self._turned_names = {weight_name(node) for node in job.nodes if node.kind == "dense"}
        given = {name: batch[name] for name in (*job.sources, job.target)}
        self._batch = {name: _alias(memory, self._static) for name, memory in given.items()}
        self._gradients, self._programs, self._updates = {}, {}, None
        if self._static:
            self._shapes = {name: (memory.shape, memory.dtype.name) for name, memory in given.items()}
            self._executor = paddle.static.Executor(paddle.CPUPlace())
            self._program({"train": "step"}.get(job.task, job.task))
        else:
            self._layers = make_layers(paddle, job)
            self._named, self._kept = self._tensors()
        self.reset()

    def reset(self):
        """Initial weights and states of layers, empty optimizer."""
        if self._static:
            self._reset_program()
            return
        for name, value in self._job.parameters.items():
            self._named[name].set_value(self._turned(name, value))
        self._set_states({name: np.array(value) for name, value in self._job.states.items()})
        self._updates = Updates(paddle, self._job, list(self._named.values()))
        self._optimizer = self._updates.optimizer
        self._optimizer.clear_grad()

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        if self._static:
            return self._step_of_program()
        self._optimizer.clear_grad()
        loss = self._loss(self._forward(self._batch)[self._job.output], self._batch[self._job.target])
        loss.backward()
        if self._updates.decouples:
            with paddle.no_grad():
                for parameter in self._named.values():
                    parameter.scale_(self._updates.keep())
        self._optimizer.step()
        self._updates.advance()
        return float(loss)

    def gradient(self):
        """The same without update."""
        if self._static:
            found = self._run("gradient")
            self._gradients = dict(zip(self._job.parameters, found[1:]))
            return float(np.array(found[0]))
        for parameter in self._named.values():
            parameter.clear_gradient(set_to_zero=False)
        loss = self._loss(self._forward(self._batch)[self._job.output], self._batch[self._job.target])
        loss.backward()
        return float(loss)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        if self._static:
            return self._run("forward")[0]
        with paddle.no_grad(), self._inferring():
            return self._forward(self._read())[self._job.output]

    def evaluate(self):
        """Inference between training steps."""
        return np.array(self.forward())

    def parameters(self):
        """Name -> array."""
        if self._static:
            return {n: self._turned(n, np.array(self._variable(n))) for n in self._job.parameters}
        return {name: self._turned(name, p.numpy()) for name, p in self._named.items()}

    def gradients(self):
        """Of the last step; a static program keeps those of the last gradient()."""
        if self._static:
            return {name: self._turned(name, np.array(value)) for name, value in self._gradients.items()}
        found = {name: p.grad for name, p in self._named.items() if p.grad is not None}
        return {name: self._turned(name, gradient.numpy()) for name, gradient in found.items()}

    def states(self):
        """What the optimizer keeps; a program that does not train has none."""
        found = {}
        if self._updates is None:
            return found
        for ours, theirs in self._updates.names.items():
            if self._static:
                kept = {name: self._state(name, theirs) for name in self._job.parameters}
            else:
                kept = self._optimizer._accumulators.get(theirs, {})
            arrays = {name: self._turned(name, np.array(one)) for name, one in kept.items()}
            found.update((name + "." + ours, array) for name, array in arrays.items())
        return found

    def layer_states(self):
        """Name -> array."""
        if self._static:
            return {name: np.array(self._variable(name)) for name in self._job.states}
        return {name: self._kept[name].numpy().copy() for name in self._job.states}

    def activations(self):
        """Of every layer, on the current batch: a pass of its own, in no timed step. States are as before."""
        names = [node.name for node in self._job.nodes if node.name != self._job.loss]
        now = self.layer_states()
        if self._static:
            found = {name: np.array(value) for name, value in zip(names, self._run("activations"))}
        else:
            with paddle.no_grad():
                values = self._forward(self._batch)
            found = {name: values[name].numpy() for name in names}
        self._set_states(now)
        return found

    def _set_states(self, values):
        for name, value in values.items():
            if self._static:
                self._variable(name).set(value, paddle.CPUPlace())
            else:
                self._kept[name].set_value(value)

    def _run(self, verb):
        program, given, fetched = self._program(verb)
        return self._executor.run(program, feed=given, fetch_list=fetched, return_numpy=False)

    def _program(self, verb):
        """The program of a verb, what it is given, and what it answers. All programs find the same parameters
        by their names."""
        if verb in self._programs:
            return self._programs[verb]
        job, program, start = self._job, paddle.static.Program(), paddle.static.Program()
        given = dict(self._batch)  # its own: Paddle takes out what a program does not know
        with paddle.static.program_guard(program, start):
            asked = self._read() if verb == "forward" else self._batch
            inputs = {name: paddle.static.data(name, *self._shapes[name]) for name in asked}
            self._layers = make_layers(paddle, job)
            with self._inferring() if verb == "forward" else contextlib.nullcontext():
                values = self._forward(inputs)
            loss = self._loss(values[job.output], inputs[job.target])
            weights, _ = self._tensors()
            if verb == "step":
                given.update(self._minimize(loss, weights.values()))
                fetched = [loss]
            elif verb == "gradient":
                fetched = [loss, *paddle.static.gradients([loss], [weights[n] for n in job.parameters])]
            elif verb == "forward":
                fetched = [values[job.output]]
            else:
                fetched = [values[node.name] for node in job.nodes if node.name != job.loss]
        kept = {}
        if self._programs:
            kept = dict(self.parameters(), **self.layer_states())
        self._executor.run(start)
        for name, value in kept.items():
            self._variable(name).set(self._turned(name, value), paddle.CPUPlace())
        self._programs[verb] = program, given, fetched
        return self._programs[verb]

    def _minimize(self, loss, weights):
        """Appends the update to the program that is being built; what it needs beside the batch."""
        self._updates = Updates(paddle, self._job, None)
        optimizer = self._updates.optimizer
        if not self._updates.decouples:
            optimizer.minimize(loss, parameters=list(weights))
            return {}
        pairs = optimizer.backward(loss, parameters=list(weights))
        keep = paddle.static.data("keep", [1], "float32")
        for weight in weights:
            paddle.assign(weight * keep, output=weight)
        optimizer.apply_gradients(pairs)
        self._keep = np.ones(1, np.float32)
        return {"keep": self._keep}

    def _step_of_program(self):
        if self._updates.decouples:
            self._keep[0] = self._updates.keep()
        loss = float(np.array(self._run("step")[0]))
        self._updates.advance()
        return loss

    def _reset_program(self):
        """Initial weights, empty optimizer: of the task train."""
        for name, value in self._job.parameters.items():
            self._variable(name).set(self._turned(name, value), paddle.CPUPlace())
        self._set_states({name: np.array(value) for name, value in self._job.states.items()})
        if "step" in self._programs:
            self._updates.reset()
            powers = POWERS if self._updates.has_powers else ()
            for theirs in (*self._updates.names.values(), *powers):
                for name in self._job.parameters:
                    state = self._state(name, theirs)
                    state.set(np.zeros_like(np.array(state)), paddle.CPUPlace())

    def _state(self, name, theirs):
        return self._variable("{}_{}_0".format(name, theirs))

    def _variable(self, name):
        found = paddle.static.global_scope().find_var(name)
        return found and found.get_tensor()

    def _loss(self, prediction, labels):
        return LOSSES[self._job.node(self._job.loss).kind](paddle.nn.functional, prediction, labels)

    def _tensors(self):
        """Parameters and states of the layers: name -> tensor."""
        found = {p.name: p for layer in self._layers.values() for p in layer.parameters()}
        return tuple(
            {name: found[name] for name in names} for names in (self._job.parameters, self._job.states)
        )

    @contextlib.contextmanager
    def _inferring(self):
        """Where layers with states read them."""
        stated = [self._layers[node.name] for node in self._job.nodes if node.states]
        for layer in stated:
            layer.eval()
        yield
        for layer in stated:
            layer.train()

    def _read(self):
        """Of the batch what inference reads: no masks."""
        return {name: values for name, values in self._batch.items() if name not in self._job.masks}

    def _turned(self, name, array):
        """Dense weights are (in, out) here and (out, in) in the job."""
        return np.ascontiguousarray(array.T) if name in self._turned_names else np.array(array)

    def _forward(self, inputs):
        """Node -> its output; the inputs too. Without masks: in inference."""
        values = dict(inputs)
        for name, layer in self._layers.items():
            values[name] = layer(*[values[i] for i in self._job.node(name).inputs if i in values])
        return values


def _alias(array, static):
    """A tensor on the array's own memory."""
    if not static:
        return paddle.utils.dlpack.from_dlpack(array)
    tensor = paddle.base.core.DenseTensor()
    tensor.set(array, paddle.CPUPlace(), True)
    return tensor
