"""Keras 2.3.1 on TensorFlow 1.15: a Model and train_on_batch."""

import os

import numpy as np
from keras_network import LAYERS, Network
from timetrial_adapter import UNDILATED, UNGROUPED, BaseAdapter, ChannelsLast, bias_name, weight_name


def _squared_error(classes):
    def squared_error(labels, prediction):
        target = keras.backend.one_hot(keras.backend.cast(keras.backend.flatten(labels), "int32"), classes)
        return keras.backend.mean(keras.backend.square(prediction - target), axis=-1)

    return squared_error


# Functions of the number of classes.
LOSSES = {
    "softmax_cross_entropy": lambda _: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "squared_error": _squared_error,
}

LIMITS = {"conv2d": {**UNGROUPED, **UNDILATED}}


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    backend = "tensorflow"
    data_format = "channels_last"

    def load(self, settings):
        """Imports Keras; the backend's session gets the pools asked."""
        global keras
        os.environ["KERAS_BACKEND"] = self.backend
        import keras

        self._start(settings)
        self.version = keras.__version__
        self.library = "Keras {} on {}".format(keras.__version__, self._backend_version())

    def read_settings(self):
        """TensorFlow's session repeats its configuration; what it made of it, nothing reports."""
        return {"threads": (None, "nothing reports it; the session was given ConfigProto")}

    def facts(self):
        """The backend."""
        return {"keras.backend": self._backend_version()}

    def build(self, job, batch):
        """The model, compiled with loss and optimizer; functions are made at the first step."""
        self._job, self._images, self._labels = job, batch[job.sources[0]], batch[job.target]
        self._form = self._make_form(job)
        self._network = Network(keras, job, LAYERS, self.data_format, self._lowest_padding)
        self._given = [batch[name] for name in self._network.given]
        self._model = self._network.model
        self._optimizer = _make_optimizer(job.optimizer)
        loss = LOSSES[job.node(job.loss).kind](job.classes)
        self._model.compile(optimizer=self._optimizer, loss=loss)
        self._variables = {}
        for node in job.nodes:
            if node.parameters:
                self._variables[weight_name(node)] = self._network.layers[node.name].kernel
                if bias_name(node):
                    self._variables[bias_name(node)] = self._network.layers[node.name].bias
        self._differentiate = None
        self._gradients = {}
        self._compile()
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer (its variables exist from the first step on)."""
        values = [(variable, self._form.initial(name)) for name, variable in self._variables.items()]
        values += [(v, np.zeros_like(keras.backend.get_value(v))) for v in self._optimizer.weights]
        keras.backend.batch_set_value(values)

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        return float(self._model.train_on_batch(self._given, self._labels))

    def gradient(self):
        """The same without update; gradients stay here."""
        if self._differentiate is None:
            self._differentiate = self._make_gradient_function()
        given, labels, sample_weights = self._model._standardize_user_data(self._given, self._labels)
        found = self._differentiate(given + labels + sample_weights)
        self._gradients = dict(zip(self._variables, found[1:]))
        return float(found[0])

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._network.inferring.predict_on_batch(self._images)

    def evaluate(self):
        """The same."""
        return self.forward()

    def parameters(self):
        """Name -> array."""
        values = zip(self._variables, keras.backend.batch_get_value(list(self._variables.values())))
        return {name: self._form.parameter(name, value) for name, value in values}

    def gradients(self):
        """Of the last gradient()."""
        return {name: self._form.parameter(name, value) for name, value in self._gradients.items()}

    def states(self):
        """The optimizer's momentum: Keras keeps it times minus the learning rate."""
        if not self._job.optimizer["momentum"] or not self._optimizer.weights:
            return {}
        rate = self._job.optimizer["learning_rate"]
        kept = keras.backend.batch_get_value(self._optimizer.weights[1:])  # the first one counts the steps
        names = {variable.name: name for name, variable in self._variables.items()}
        of = {names[v.name]: m for v, m in zip(self._model.trainable_weights, kept)}
        return {n + ".velocity": self._form.parameter(n, m) / -rate for n, m in of.items()}

    def activations(self):
        """Of every layer, on the current batch, by a function of its own."""
        outputs = self._network.outputs
        values = keras.backend.function(self._model.inputs, list(outputs.values()))(self._given)
        return {name: self._form.activation(name, v) for name, v in zip(outputs, values)}

    def _make_gradient_function(self):
        model = self._model
        given = model._feed_inputs + model._feed_targets + model._feed_sample_weights
        found = keras.backend.gradients(model.total_loss, list(self._variables.values()))
        return keras.backend.function(given, [model.total_loss, *found])

    # What another backend has otherwise.

    def _start(self, settings):
        import tensorflow as tf

        threads = int(settings.get("threads", 0))  # 0: TensorFlow's default
        config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        tf.compat.v1.keras.backend.set_session(tf.Session(config=config))

    def _backend_version(self):
        import tensorflow as tf

        return "TensorFlow {}".format(tf.__version__)

    def _compile(self):
        """TensorFlow makes its functions at the first step."""

    def _make_form(self, job):
        return ChannelsLast(job)

    def _lowest_padding(self, rows, columns):
        first = 2 if self.data_format == "channels_first" else 1

        def pad(x):
            for axis, (before, after) in ((first, rows), (first + 1, columns)):
                edge = x[:, :1] if axis == 1 else x[:, :, :1] if axis == 2 else x[:, :, :, :1]
                lowest = keras.backend.zeros_like(edge) - 3e38
                parts = [lowest] * before + [x] + [lowest] * after
                x = keras.backend.concatenate(parts, axis=axis) if len(parts) > 1 else x
            return x

        return pad


def _make_optimizer(settings):
    """Keras' SGD; weight decay is part of the gradient."""
    decay = settings["weight_decay"]

    class DecayedSGD(keras.optimizers.SGD):
        def get_gradients(self, loss, params):
            gradients = super().get_gradients(loss, params)
            return [g + decay * p for g, p in zip(gradients, params)] if decay else gradients

    return DecayedSGD(learning_rate=settings["learning_rate"], momentum=settings["momentum"])
