"""Keras 3 on the CPU: a Model and train_on_batch; the mode names the backend that computes."""

import os

import keras_gradients
import numpy as np
from keras_layers import LAYERS, tensors_of
from keras_network import Network
from keras_paths import path_of
from keras_sequences import GATES, LIMITS
from keras_updates import Updates
from timetrial_adapter import BaseAdapter, ChannelsLast, is_recurrent, path_facts, reads_lengths
from timetrial_updates import OPTIMIZERS


def _squared_error(labels, prediction):
    """Per sample: the mean over F of (prediction - one-hot)^2."""
    labels = keras.ops.cast(keras.ops.reshape(labels, (-1,)), "int32")
    target = keras.ops.one_hot(labels, prediction.shape[-1])
    return keras.ops.mean(keras.ops.square(prediction - target), axis=-1)


def _mean_squared_error(target, prediction):
    """Per sample: the mean over F of (prediction - target)^2."""
    if len(target.shape) == 4:  # images, channels last; what is predicted of them is in the job's order
        target = keras.ops.transpose(target, (0, 3, 1, 2))
    return keras.ops.mean(keras.ops.square(prediction - keras.ops.reshape(target, prediction.shape)), axis=-1)


def _sequence_cross_entropy(target, prediction):
    """Per place, 0 where none counts, so that their mean is that over those that count."""
    counted = keras.ops.cast(target >= 0, prediction.dtype)
    labels = keras.ops.maximum(target, 0)
    found = keras.losses.sparse_categorical_crossentropy(labels, prediction, from_logits=True)
    return found * counted / keras.ops.mean(counted)


LOSSES = {
    "softmax_cross_entropy": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "sequence_cross_entropy": lambda: _sequence_cross_entropy,
    "squared_error": lambda: _squared_error,
    "mean_squared_error": lambda: _mean_squared_error,
}


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    several_inputs = True
    sequences = True
    optimizers = OPTIMIZERS

    def load(self, settings):
        """Imports Keras on its backend, which is told how many threads to use where it can be told."""
        global keras
        os.environ["KERAS_BACKEND"] = self.mode
        threads = int(settings["threads"]) if "threads" in settings else None
        self._threads = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[self.mode](threads)
        import keras

        backend = __import__(self.mode)
        self.version = keras.__version__
        self.library = "Keras {} on {} {}".format(keras.__version__, self.mode, backend.__version__)

    def read_settings(self):
        """The backend's answers."""
        return {"threads": self._threads(), "mode": (keras.backend.backend(), "keras.backend.backend()")}

    def facts(self):
        """The backend, and whether train_on_batch compiles with XLA: Keras decides that by itself."""
        found = {"keras.backend": self.library, "keras.jit_compile": self._model.jit_compile}
        for node in self._job.layers:
            if is_recurrent(node):
                found.update(self._path(node))
        return found

    def _path(self, node):
        """On torch Keras multiplies the inputs of all steps at once, unless there is a mask."""
        given = self._job.inputs
        read = [given[name] if name in given else self._job.node(name) for name in node.inputs]
        layer, shapes = self._network.layers[node.name], [one.shape for one in read]
        path, is_fast = path_of(self.mode, layer, shapes)
        faster = None
        if is_fast is False and reads_lengths(node) and path_of(self.mode, layer, shapes[:1])[1]:
            faster = "without lengths Keras multiplies the inputs of all steps at once"
        return path_facts(self._job, node, path, faster)

    def build(self, job, batch):
        """The model, compiled with loss and optimizer; functions are traced at the first step."""
        self._job, self._labels = job, batch[job.target]
        self._form = ChannelsLast(job, GATES)
        self._network = Network(keras, job, LAYERS, "channels_last", _lowest_padding)
        self._given, self._read = (
            [batch[name] for name in names] if len(names) > 1 else batch[names[0]]
            for names in (self._network.given, self._network.read)
        )
        self._model = self._network.model
        self._updates = Updates(keras, job)
        loss = LOSSES[job.node(job.loss).kind]()
        self._model.compile(optimizer=self._updates.optimizer, loss=loss)
        self._updates.optimizer.build(self._model.trainable_variables)
        # Name -> variable, and which of its rows where a variable holds two of the job's parameters.
        self._variables, self._rows, self._kept = {}, {}, {}
        for node in job.nodes:
            if node.parameters:
                parameters, states = tensors_of(node, self._network.layers[node.name])
                names = [name for name, _ in node.parameters]
                self._variables.update(zip(names, parameters))
                for place, (name, one) in enumerate(zip(names, parameters)):
                    if sum(one is other for other in parameters) > 1:
                        self._rows[name] = sum(one is other for other in parameters[:place])
                self._kept.update(zip([name for name, _ in node.states], states))
        self._find_gradients = None
        self._gradients = {}
        self.reset()

    def reset(self):
        """Initial weights and states of layers, empty optimizer."""
        for name, variable in self._variables.items():
            values = self._form.initial(name)
            if name in self._rows:
                whole = np.array(keras.ops.convert_to_numpy(variable))
                whole[self._rows[name]] = values
                values = whole
            variable.assign(np.reshape(values, variable.shape))  # one kernel per channel
        for name, variable in self._kept.items():
            variable.assign(np.array(self._job.states[name]))
        self._updates.reset()

    def step(self):
        """One training step; the mean loss of the batch before the update, as a number; Keras waits."""
        self._updates.before()
        return float(self._model.train_on_batch(self._given, self._labels))

    def gradient(self):
        """The same without update, by the backend's own means: Keras has no word for it."""
        if self._find_gradients is None:
            self._find_gradients = keras_gradients.function(self.mode, keras, self._model)
        loss, gradients = self._find_gradients(self._given, self._labels)
        self._gradients = {v.path: g for v, g in zip(self._model.trainable_variables, gradients)}
        return float(loss)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._network.inferring.predict_on_batch(self._read)

    def evaluate(self):
        """The same."""
        return self.forward()

    def parameters(self):
        """Name -> array."""
        return self._in_the_jobs_form(lambda variable: variable)

    def gradients(self):
        """Of the last gradient()."""
        return self._in_the_jobs_form(lambda v: self._gradients[v.path]) if self._gradients else {}

    def states(self):
        """What the optimizer keeps."""
        found, (kept, factor) = {}, self._updates.states()
        for state, variables in kept:
            of = {v.path: one for v, one in zip(self._model.trainable_variables, variables)}
            arrays = self._in_the_jobs_form(lambda variable, of=of: of[variable.path])
            found.update(("{}.{}".format(name, state), array / factor) for name, array in arrays.items())
        return found

    def layer_states(self):
        """Name -> array."""
        return {n: np.array(keras.ops.convert_to_numpy(variable)) for n, variable in self._kept.items()}

    def activations(self):
        """Of every layer, on the current batch, by a model with all of them as outputs; states are as
        before."""
        before, outputs = self.layer_states(), self._network.outputs
        given = self._given if isinstance(self._given, list) else [self._given]
        values = keras.models.Model(self._model.inputs, outputs)(given, training=True)
        for name, value in before.items():
            self._kept[name].assign(value)
        return {n: self._form.activation(n, keras.ops.convert_to_numpy(v)) for n, v in values.items()}

    def _in_the_jobs_form(self, tensor_of):
        def arranged(name, array):
            array = array[self._rows[name]] if name in self._rows else array
            return self._form.parameter(name, np.reshape(array, self._form.initial(name).shape))

        return {
            name: arranged(name, keras.ops.convert_to_numpy(tensor_of(variable)))
            for name, variable in self._variables.items()
        }


def _tensorflow(threads):
    import tensorflow as tf

    threading = tf.config.threading
    if threads:
        threading.set_intra_op_parallelism_threads(threads)
        threading.set_inter_op_parallelism_threads(threads)

    def read():
        found = threading.get_intra_op_parallelism_threads()
        source = "tf.config.threading.get_intra_op_parallelism_threads() {}".format(found)
        return (str(found), source) if found else (None, source + ", what it says of its default")

    return read


def _jax(threads):
    return lambda: (None, "JAX has no setting and no getter of threads")


def _torch(threads):
    import torch

    if threads:
        torch.set_num_threads(threads)
    return lambda: (str(torch.get_num_threads()), "torch.get_num_threads()")


def _lowest_padding(rows, columns):
    pads = ((0, 0), rows, columns, (0, 0))
    return lambda x: keras.ops.pad(x, pads, constant_values=-float("inf"))
