"""TensorFlow 2 on the CPU: variables, tf.nn, a GradientTape; in one tf.function unless eager."""

import numpy as np
from tensorflow_layers import LAYERS
from tensorflow_network import LOSSES, mean_loss, predict
from tensorflow_sequences import GATES, WAYS, kinds_of, path_of
from timetrial_adapter import BaseAdapter, ChannelsLast, Values, is_recurrent, path_facts
from timetrial_updates import OPTIMIZERS, Update


def _sgd(update, weight, kept, gradient, rate):
    """Keras' SGD decays apart from the momentum, so this takes the operations of TensorFlow's own."""
    if not kept:
        tf.raw_ops.ResourceApplyGradientDescent(var=weight.handle, alpha=rate, delta=gradient)
        return
    tf.raw_ops.ResourceApplyMomentum(
        var=weight.handle,
        accum=kept["velocity"].handle,
        lr=rate,
        grad=gradient,
        momentum=update.numbers["momentum"],
        use_nesterov="nesterov" in update.numbers,
    )


def _adam(update, weight, kept, gradient, rate):
    """The rate has the bias corrections in it: the powers of both betas are 0."""
    n = update.numbers
    tf.raw_ops.ResourceApplyAdam(
        var=weight.handle,
        m=kept["first_moment"].handle,
        v=kept["second_moment"].handle,
        beta1_power=np.float32(0),
        beta2_power=np.float32(0),
        lr=rate,
        beta1=n["beta1"],
        beta2=n["beta2"],
        epsilon=n["epsilon"],
        grad=gradient,
    )


def _adagrad(update, weight, kept, gradient, rate):
    tf.raw_ops.ResourceApplyAdagradV2(
        var=weight.handle,
        accum=kept["squared_sum"].handle,
        lr=rate,
        epsilon=update.numbers["epsilon"],
        grad=gradient,
    )


def _adadelta(update, weight, kept, gradient, rate):
    tf.raw_ops.ResourceApplyAdadelta(
        var=weight.handle,
        accum=kept["second_moment"].handle,
        accum_update=kept["squared_update"].handle,
        lr=rate,
        rho=update.numbers["rho"],
        epsilon=update.numbers["epsilon"],
        grad=gradient,
    )


def _by_formula(update, weight, kept, gradient, rate):
    change, after = update.step(gradient, kept, rate)
    for state, value in after.items():
        kept[state].assign(value)
    weight.assign_sub(change)


# TensorFlow's own operations, where they have the job's formula: its RMSProp has the epsilon inside the root.
RULES = {"sgd": _sgd, "adam": _adam, "adamw": _adam, "adagrad": _adagrad, "adadelta": _adadelta}


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    several_inputs = True
    sequences = True
    ways = WAYS
    optimizers = OPTIMIZERS

    def load(self, settings):
        """Imports TensorFlow and sizes both of its pools; after its first operation it would be too late."""
        global tf
        import tensorflow as tf

        if self.mode == "xla":
            self.ways = WAYS[:1]
        at_once = settings.get("inter_op_threads", settings.get("threads"))
        if "threads" in settings:
            tf.config.threading.set_intra_op_parallelism_threads(int(settings["threads"]))
        if at_once is not None:
            tf.config.threading.set_inter_op_parallelism_threads(int(at_once))
        if settings.get("determinism") == "on":
            tf.config.experimental.enable_op_determinism()
        self.version = tf.__version__
        self.library = "TensorFlow {}".format(tf.__version__)

    def read_settings(self):
        """The getters answer what was set by call, and 0 for anything else."""
        intra = tf.config.threading.get_intra_op_parallelism_threads()
        inter = tf.config.threading.get_inter_op_parallelism_threads()
        source = "tf.config.threading: intra_op {}, inter_op {}".format(intra, inter)
        default = source + "; 0 is what it says of its default"
        return {
            "threads": (str(intra) if intra else None, source if intra else default),
            "inter_op_threads": (str(inter) if inter else None, source if inter else default),
            "mode": (self._mode_of(self._train), "type of the step, its jit_compile"),
        }

    def facts(self):
        """What TensorFlow says of its build and of the libraries that it uses."""
        found = {
            "tensorflow.git": tf.version.GIT_VERSION,
            "tensorflow.compiler": tf.version.COMPILER_VERSION,
        }
        for node in self._job.layers:
            if is_recurrent(node):
                is_slow = node.kind.endswith("lstm") and self.mode == "xla"
                faster = "mode=graph takes TensorFlow's fused kernel" if is_slow else None
                path = path_of(self._operations(node), eager=self.mode == "eager")
                found.update(path_facts(self._job, node, path, faster, self._way))
        try:
            from tensorflow.python.util import _pywrap_util_port as port
        except ImportError:  # not a public module: another version may lack it
            return found
        return dict(found, **{"onednn": port.IsMklEnabled(), "tensorflow.xla": port.IsBuiltWithXLA()})

    def build(self, job, batch):
        """Variables and, but for eager, the functions to be traced at the first step."""
        self._job, self._labels = job, batch[job.target]
        self._inputs = {name: batch[name] for name in job.sources}
        self._read = {name: array for name, array in self._inputs.items() if name not in job.masks}
        self._way = job.settings.get("lengths", WAYS[0])
        self._kinds = kinds_of(LAYERS, self._way, compiled=self.mode == "xla")
        self._form = ChannelsLast(job, GATES)
        self._weights = {name: tf.Variable(self._form.initial(name), name=name) for name in job.parameters}
        self._moving = {name: tf.Variable(np.array(value)) for name, value in job.states.items()}
        self._update = Update(job, tf.sqrt, np.float32)
        self._apply = _by_formula if self._update.inside else RULES.get(self._update.rule, _by_formula)
        self._kept = {
            name: {state: tf.Variable(tf.zeros_like(weight)) for state in self._update.states}
            for name, weight in self._weights.items()
        }
        self._gradients = {}
        self._train = self._compiled(self._update_step)
        self._differentiate = self._compiled(self._loss_and_gradients)
        self._infer = self._compiled(self._predict)
        self.reset()

    def reset(self):
        """Initial weights and states of layers, empty optimizer."""
        for name, variable in self._weights.items():
            variable.assign(self._form.initial(name))
        for name, variable in self._moving.items():
            variable.assign(np.array(self._job.states[name]))
        for kept in self._kept.values():
            for state in kept.values():
                state.assign(tf.zeros_like(state))
        self._taken = 0

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        if not self._update.changes:
            return float(self._train(*self._batch()))
        sizes = [tf.constant(size, tf.float32) for size in self._update.sizes(self._taken)]
        self._taken += 1
        return float(self._train(*self._batch(), *sizes))

    def gradient(self):
        """The same without update; gradients stay here."""
        loss, self._gradients = self._differentiate(*self._batch())
        return float(loss)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._infer(_tensors(self._read))

    def evaluate(self):
        """The same as an array."""
        return self.forward().numpy()

    def parameters(self):
        """Name -> array."""
        return {n: self._form.parameter(n, w.numpy()) for n, w in self._weights.items()}

    def gradients(self):
        """Of the last gradient()."""
        return {n: self._form.parameter(n, g.numpy()) for n, g in self._gradients.items()}

    def states(self):
        """What the optimizer keeps."""
        return {
            "{}.{}".format(name, state): self._form.parameter(name, value.numpy())
            for name, kept in self._kept.items()
            for state, value in kept.items()
        }

    def layer_states(self):
        """Name -> array."""
        return {name: value.numpy() for name, value in self._moving.items()}

    def activations(self):
        """Of every layer, on the current batch: a forward pass of its own, in no timed step."""
        values = predict(tf, self._job, self._kinds, self._values(learns=True), _tensors(self._inputs))
        return {name: self._form.activation(name, value.numpy()) for name, value in values.items()}

    def _batch(self):
        return _tensors(self._inputs), tf.convert_to_tensor(self._labels)

    def _compiled(self, function):
        if self.mode == "eager":
            return function
        return tf.function(function, jit_compile=self.mode == "xla")

    def _mode_of(self, function):
        if not hasattr(function, "get_concrete_function") or tf.config.functions_run_eagerly():
            return "eager"
        return "xla" if getattr(function, "_jit_compile", False) else "graph"

    def _values(self, learns):
        return Values(dict(self._weights, **self._moving), learns)

    def _predict(self, inputs):
        return predict(tf, self._job, self._kinds, self._values(learns=False), inputs)[self._job.output]

    def _operations(self, node):
        """The types of those that a layer is made of, by a trace of that layer alone."""
        given = self._job.inputs
        read = [given[name] if name in given else self._job.node(name) for name in node.inputs]
        specs = [tf.TensorSpec(one.shape, one.dtype or tf.float32) for one in read]
        layer, values = self._kinds[node.kind], self._values(learns=True)
        made = tf.function(lambda *x: layer(tf, node, values, *x), autograph=False)
        return {one.type for one in made.get_concrete_function(*specs).graph.get_operations()}

    def _loss_and_gradients(self, inputs, labels):
        values = self._values(learns=True)
        with tf.GradientTape() as tape:
            prediction = predict(tf, self._job, self._kinds, values, inputs)[self._job.output]
            loss = mean_loss(tf, self._job, prediction, labels)
        for name, value in values.moved.items():
            self._moving[name].assign(value)
        # Of a table whole, not of the rows that were read.
        found = tape.gradient(loss, self._weights)
        return loss, {name: tf.convert_to_tensor(gradient) for name, gradient in found.items()}

    def _update_step(self, inputs, labels, *sizes):
        """Constants are part of a compiled step; sizes that change come with every call."""
        loss, gradients = self._loss_and_gradients(inputs, labels)
        update, (rate, shrink) = self._update, sizes or map(np.float32, self._update.sizes(0))
        if update.clip_norm is not None:
            found, _ = tf.clip_by_global_norm(list(gradients.values()), update.clip_norm)
            gradients = dict(zip(gradients, found))
        for name, weight in self._weights.items():
            gradient = update.decayed(gradients[name], weight)
            if update.is_decoupled:
                weight.assign_sub(shrink * weight)
            self._apply(update, weight, self._kept[name], gradient, rate)
        return loss


def _tensors(arrays):
    return {name: tf.convert_to_tensor(array) for name, array in arrays.items()}
