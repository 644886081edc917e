"""Keras 2.3.1 on Theano: images as (N, C, H, W), and convolutions that turn their kernels around."""

import adapter_v2
import numpy as np


class Adapter(adapter_v2.Adapter):
    """See frameworks/README.md for the shape of an adapter."""

    backend = "theano"
    data_format = "channels_first"

    def read_settings(self):
        """Theano asks OpenMP, and knows nothing of the BLAS that it calls."""
        return {"threads": (None, "Theano does not know the threads of the BLAS that it calls")}

    def _start(self, settings):
        """Threads come from the environment."""

    def _backend_version(self):
        import theano

        return "Theano {}".format(theano.__version__)

    def facts(self):
        """The backend and what it compiles with."""
        import theano

        found = super().facts()
        found["theano.blas.ldflags"] = theano.config.blas.ldflags
        found["theano.cxx"] = theano.config.cxx
        return found

    def _compile(self):
        """What the task needs, with its time in the phase `build`: C++ takes its minute."""
        if self._job.task == "train":
            self._model._make_train_function()
        elif self._job.task == "gradient":
            self._differentiate = self._make_gradient_function()
        else:
            self._network.inferring._make_predict_function()

    def _make_form(self, job):
        return TurnedKernels(job)


class TurnedKernels(object):
    """Kernels are (H, W, in, out) whatever the layout of images, and a true convolution turns them."""

    def __init__(self, job):
        self._job = job

    def initial(self, name):
        """The initial value of a parameter, as Keras wants it."""
        array = np.array(self._job.parameters[name])
        if array.ndim == 4:
            return np.ascontiguousarray(array.transpose(2, 3, 1, 0)[::-1, ::-1])
        return np.ascontiguousarray(array.T)

    def parameter(self, name, array):
        """A parameter's value, gradient or velocity, as the job has it."""
        array = np.asarray(array)
        return array[::-1, ::-1].transpose(3, 2, 0, 1) if array.ndim == 4 else array.T

    def activation(self, name, array):
        """The output of a layer: the job has the same layout."""
        return array
