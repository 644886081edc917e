"""TensorFlow 2 on the CPU: variables, tf.nn, a GradientTape; in one tf.function unless eager."""

import numpy as np
from tensorflow_network import LAYERS, LOSSES, mean_loss, predict
from timetrial_adapter import BaseAdapter, ChannelsLast


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)

    def load(self, settings):
        """Imports TensorFlow and sizes both of its pools; after its first operation it would be too late."""
        global tf
        import tensorflow as tf

        if "threads" in settings:
            tf.config.threading.set_intra_op_parallelism_threads(int(settings["threads"]))
            tf.config.threading.set_inter_op_parallelism_threads(int(settings["threads"]))
        self.version = tf.__version__
        self.library = "TensorFlow {}".format(tf.__version__)

    def read_settings(self):
        """The getters answer what was set by call, and 0 for anything else."""
        intra = tf.config.threading.get_intra_op_parallelism_threads()
        inter = tf.config.threading.get_inter_op_parallelism_threads()
        source = "tf.config.threading: intra_op {}, inter_op {}".format(intra, inter)
        threads = str(intra) if intra == inter and intra else None
        return {
            "threads": (threads, source if threads else source + "; 0 is what it says of its default"),
            "mode": (self._mode_of(self._train), "type of the step, its jit_compile"),
        }

    def facts(self):
        """What TensorFlow says of its build and of the libraries that it uses."""
        found = {
            "tensorflow.git": tf.version.GIT_VERSION,
            "tensorflow.compiler": tf.version.COMPILER_VERSION,
        }
        try:
            from tensorflow.python.util import _pywrap_util_port as port
        except ImportError:  # not a public module: another version may lack it
            return found
        return dict(found, **{"onednn": port.IsMklEnabled(), "tensorflow.xla": port.IsBuiltWithXLA()})

    def build(self, job, batch):
        """Variables and, but for eager, the functions to be traced at the first step."""
        images, labels = batch[job.sources[0]], batch[job.target]
        self._job, self._images, self._labels = job, images, labels
        self._form = ChannelsLast(job)
        self._weights = {name: tf.Variable(self._form.initial(name), name=name) for name in job.parameters}
        self._momentum = {}
        if job.optimizer["momentum"]:
            self._momentum = {n: tf.Variable(tf.zeros_like(w)) for n, w in self._weights.items()}
        self._gradients = {}
        self._train = self._compiled(self._update_step)
        self._differentiate = self._compiled(self._loss_and_gradients)
        self._infer = self._compiled(self._predict)
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        for name, variable in self._weights.items():
            variable.assign(self._form.initial(name))
        for velocity in self._momentum.values():
            velocity.assign(tf.zeros_like(velocity))

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        return float(self._train(*self._batch()))

    def gradient(self):
        """The same without update; gradients stay here."""
        loss, self._gradients = self._differentiate(*self._batch())
        return float(loss)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._infer(tf.convert_to_tensor(self._images))

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
        """The optimizer's momentum."""
        return {n + ".velocity": self._form.parameter(n, v.numpy()) for n, v in self._momentum.items()}

    def activations(self):
        """Of every layer, on the current batch: a forward pass of its own, in no timed step."""
        values = predict(tf, self._job, self._weights, tf.convert_to_tensor(self._images))
        return {name: self._form.activation(name, value.numpy()) for name, value in values.items()}

    def _batch(self):
        return tf.convert_to_tensor(self._images), tf.convert_to_tensor(self._labels)

    def _compiled(self, function):
        if self.mode == "eager":
            return function
        return tf.function(function, jit_compile=self.mode == "xla")

    def _mode_of(self, function):
        if not hasattr(function, "get_concrete_function") or tf.config.functions_run_eagerly():
            return "eager"
        return "xla" if getattr(function, "_jit_compile", False) else "graph"

    def _predict(self, images):
        return predict(tf, self._job, self._weights, images)[self._job.output]

    def _loss_and_gradients(self, images, labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(tf, self._job, self._predict(images), labels)
        return loss, tape.gradient(loss, self._weights)

    def _update_step(self, images, labels):
        """v = momentum * v + g + decay * w; w -= rate * v. Keras' SGD decays apart from the momentum, so this
        takes the operations of TensorFlow's own optimizers."""
        loss, gradients = self._loss_and_gradients(images, labels)
        rate, momentum, decay = (
            np.float32(self._job.optimizer[key]) for key in ("learning_rate", "momentum", "weight_decay")
        )
        for name, weight in self._weights.items():
            change = gradients[name] + decay * weight if decay else gradients[name]
            if momentum:
                tf.raw_ops.ResourceApplyMomentum(
                    var=weight.handle,
                    accum=self._momentum[name].handle,
                    lr=rate,
                    grad=change,
                    momentum=momentum,
                )
            else:
                tf.raw_ops.ResourceApplyGradientDescent(var=weight.handle, alpha=rate, delta=change)
        return loss
