"""TensorFlow 1 on the CPU: a graph built once, a session that runs it, TensorFlow's own optimizers."""

import os

import numpy as np
from tensorflow_layers import LAYERS
from tensorflow_network import LOSSES, mean_loss, predict
from tensorflow_sequences import GATES, path_of
from tensorflow_updates_v1 import Updates
from timetrial_adapter import UNDILATED, BaseAdapter, ChannelsLast, Values, is_recurrent, path_facts
from timetrial_updates import OPTIMIZERS

LIMITS = {"conv2d": UNDILATED}  # on the CPU it has no gradients of others


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    several_inputs = True
    sequences = True
    optimizers = OPTIMIZERS

    def load(self, settings):
        """Imports TensorFlow. Its pools get their sizes from the session's configuration."""
        global tf
        import tensorflow as tf

        threads = int(settings.get("threads", 0))  # 0: TensorFlow's default
        # MKL-DNN's operations bring an OpenMP team each: one at a time, or there are threads times threads.
        at_once = int(settings.get("inter_op_threads", 1 if threads and _has_mkl() else threads))
        self._config = tf.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=at_once
        )
        self.version = tf.__version__
        self.library = "TensorFlow {}".format(tf.__version__)

    def read_settings(self):
        """The session repeats its configuration; what it made of it, nothing reports."""
        return {
            "threads": (None, "nothing reports it; the session was given ConfigProto"),
            "inter_op_threads": (None, "nothing reports it; the session was given ConfigProto"),
            "mode": ("eager" if _runs_eagerly() else "graph", "tf.executing_eagerly()"),
        }

    def facts(self):
        """What TensorFlow says of its build."""
        found = {"tensorflow.git": tf.GIT_VERSION, "tensorflow.compiler": tf.COMPILER_VERSION}
        is_mkl = _has_mkl()
        if is_mkl is not None:
            found["tensorflow.mkl"] = is_mkl
        if "OMP_NUM_THREADS" in os.environ:
            found["tensorflow.OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        for node in self._job.layers:
            if is_recurrent(node):
                found.update(path_facts(self._job, node, path_of(self._operations(node))))
        return found

    def build(self, job, batch):
        """The graph of the step, and a session."""
        self._job, self._batch = job, {name: batch[name] for name in (*job.sources, job.target)}
        self._form = ChannelsLast(job, GATES)
        self._weights = {
            name: tf.Variable(self._form.initial(name), name=name.replace(".", "_"))
            for name in job.parameters
        }
        self._moving = {
            name: tf.Variable(np.array(value), trainable=False, name=name.replace(".", "_"))
            for name, value in job.states.items()
        }
        self._given = {
            name: tf.placeholder(array.dtype.name, array.shape) for name, array in self._batch.items()
        }
        values, inputs = self._variables(learns=True), {name: self._given[name] for name in job.sources}
        self._values = predict(tf, job, LAYERS, values, inputs)
        self._moves = [tf.assign(self._moving[name], value) for name, value in values.moved.items()]
        self._loss = mean_loss(tf, job, self._values[job.output], self._given[job.target])
        self._read = {name: given for name, given in inputs.items() if name not in job.masks}
        # Without masks and states it is the same graph.
        inferred = self._values
        if job.masks or self._moving:
            inferred = predict(tf, job, LAYERS, self._variables(learns=False), self._read)
        self._prediction = inferred[job.output]
        self._updates = Updates(tf, job)
        self._derivatives, self._update = {}, None
        if self._weights:
            found = tf.gradients(self._loss, list(self._weights.values()), gate_gradients=True)
            # Of a table whole, not of the rows that were read.
            self._derivatives = dict(zip(self._weights, map(tf.convert_to_tensor, found)))
            self._update = self._updates.of(self._weights, self._derivatives)
        self._gradients = {}
        self._session = tf.Session(config=self._config)
        self._initialize = tf.global_variables_initializer()
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer: the variables begin with both."""
        self._session.run(self._initialize)
        self._updates.taken = 0

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        given = self._fed(self._given)
        given.update(self._updates.sizes())
        return float(self._session.run([self._loss, self._update, self._moves], given)[0])

    def gradient(self):
        """The same without update; gradients stay here."""
        wanted = [self._loss, self._derivatives, self._moves]
        loss, self._gradients, _ = self._session.run(wanted, self._fed(self._given))
        return float(loss)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._session.run(self._prediction, self._fed(self._read))

    def evaluate(self):
        """The same."""
        return self.forward()

    def parameters(self):
        """Name -> array."""
        return self._in_the_jobs_form(self._session.run(self._weights))

    def gradients(self):
        """Of the last gradient()."""
        return self._in_the_jobs_form(self._gradients)

    def states(self):
        """What the optimizer keeps."""
        found = {}
        for state, variables in self._updates.kept(self._weights).items():
            arrays = self._in_the_jobs_form(self._session.run(variables) if variables else {})
            found.update(("{}.{}".format(name, state), array) for name, array in arrays.items())
        return found

    def layer_states(self):
        """Name -> array."""
        return self._session.run(self._moving) if self._moving else {}

    def activations(self):
        """Of every layer, on the current batch: a run of its own, in no timed step."""
        values = self._session.run(self._values, self._fed(self._given))
        return {name: self._form.activation(name, value) for name, value in values.items()}

    def _operations(self, node):
        """The types of those that a layer is made of, by a graph of that layer alone."""
        given = self._job.inputs
        read = [given[name] if name in given else self._job.node(name) for name in node.inputs]
        with tf.Graph().as_default() as graph:
            values = {name: tf.constant(self._form.initial(name)) for name, _ in node.parameters}
            values.update((name, tf.zeros(shape)) for name, shape in node.states)
            inputs = [tf.placeholder(one.dtype or tf.float32, one.shape) for one in read]
            LAYERS[node.kind](tf, node, Values(values, learns=True), *inputs)
        return {one.type for one in graph.get_operations()}

    def _fed(self, given):
        """Placeholder -> array of the batch, of these names."""
        return {placeholder: self._batch[name] for name, placeholder in given.items()}

    def _variables(self, learns):
        return Values(dict(self._weights, **self._moving), learns)

    def _in_the_jobs_form(self, arrays):
        return {name: self._form.parameter(name, array) for name, array in arrays.items()}


def _runs_eagerly():
    return tf.executing_eagerly() if hasattr(tf, "executing_eagerly") else False


def _has_mkl():
    """Whether oneDNN (then MKL-DNN) was compiled in; None where TensorFlow cannot say."""
    try:
        from tensorflow.python import pywrap_tensorflow

        return pywrap_tensorflow.IsMklEnabled()
    except (ImportError, AttributeError):
        return None
