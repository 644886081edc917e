"""What all adapters share. With timetrial_updates.py and symbolic_adapter.py the only module of ours that an
adapter may import.

Syntax and modules of Python 3.6; frameworks/README.md has the shape of an adapter.
"""

import os

import numpy as np

runtime = None  # the module _timetrial_runtime: set by main.py


class BaseAdapter(object):
    """Defaults of an adapter. `mode` and `user_path` are set before load()."""

    tasks = ("train", "gradient", "forward")
    devices = ("cpu",)
    dtypes = ("f32",)
    # Rules, and options: "nesterov", "decoupled", "rate_inside", "schedule" (Job.rate), "clip_norm".
    optimizers = ("sgd",)
    layers = ()  # kinds of layers and losses: the keys of the adapter's own tables, (*LAYERS, *LOSSES)
    several_inputs = False  # whether layers may read more than one input of the network
    version = ""
    library = ""
    mode = None  # of the setting `mode`; None where environment.toml lists no modes
    user_path = None  # of the user's own install, where environment.toml asks for one

    def read_settings(self):
        """name -> (value in force or None, how it was read)."""
        return {}

    def facts(self):
        """What the record should know and no setting asks for."""
        return {}

    def wait(self):
        """For asynchronous frameworks: returns when everything asked so far is computed."""

    def prediction(self, result):
        """What forward() returned, as an array (N x classes)."""
        return np.asarray(result)

    def tensors(self, role):
        """Name -> array, by one method per role: parameters(), gradients(), activations(), states() of the
        optimizer, layer_states()."""
        method = {
            "parameter": "parameters",
            "gradient": "gradients",
            "activation": "activations",
            "optimizer": "states",
            "state": "layer_states",
        }.get(role)
        return getattr(self, method, dict)() if method else {}


def pair(node, key):
    """(h, w) of "kernel", "stride" or "padding"."""
    return node.attributes[key + "_h"], node.attributes[key + "_w"]


def weight_name(node):
    """'conv1.weight'."""
    return node.name + ".weight"


def bias_name(node):
    """'conv1.bias', or None for a layer without bias."""
    return node.name + ".bias" if node.attributes.get("bias") else None


def channels_last_order(job, node):
    """For frameworks that keep images as (N, H, W, C) and flatten them so: the columns of a dense layer's
    weight (units, C*H*W) in that order, as indices; None where the layer does not follow a flatten of images.
    weight[:, order] multiplies a channels-last row; np.argsort(order) leads back."""
    return _order_of_flat(job, node.inputs[0])


def keeps_order(job, name):
    """Whether the flatten `name` must give a sample's values in the job's order, (C, H, W), though images are
    (H, W, C): where others than dense layers read them, such as a join or a dropout, whose inputs must lie
    alike."""
    for node in job.nodes:
        if name in node.inputs and node.shape:
            if any(one in job.masks for one in node.inputs):
                return True
            if keeps_order(job, node.name) if node.keeps_places else node.kind != "dense":
                return True
    return False


def _order_of_flat(job, source):
    """The same for the layer `source`, whose output is flat."""
    while source not in job.inputs and job.node(source).kind != "flatten":
        if not job.node(source).keeps_places:
            return None
        source = job.node(source).inputs[0]
    if keeps_order(job, source):
        return None
    if source in job.inputs:
        shape = job.inputs[source].shape
    else:
        before = job.node(source).inputs[0]
        shape = job.inputs[before].shape if before in job.inputs else job.node(before).shape
    if len(shape) != 4:
        return None
    _, channels, height, width = shape
    return np.arange(channels * height * width).reshape(channels, height, width).transpose(1, 2, 0).ravel()


def one_hot(labels, classes):
    """f32 (N, classes)."""
    return np.eye(classes, dtype=np.float32)[labels]


class ChannelsLast(object):
    """Between the job's tensors and those of a framework with images as (N, H, W, C), kernels as (H, W, in,
    out) and dense weights as (in, out): the ways there and back."""

    def __init__(self, job):
        self._job = job
        self._orders = {}
        for node in job.nodes:
            if node.kind == "dense":
                self._orders[weight_name(node)] = channels_last_order(job, node)

    def initial(self, name):
        """The initial value of a parameter, as the framework wants it."""
        array = np.array(self._job.parameters[name])
        if array.ndim == 4:
            return np.ascontiguousarray(array.transpose(2, 3, 1, 0))
        if array.ndim == 2:
            order = self._orders[name]
            return np.ascontiguousarray((array if order is None else array[:, order]).T)
        return array

    def parameter(self, name, array):
        """A parameter's value, gradient or state, as the job has it."""
        array = np.asarray(array)
        if array.ndim == 4:
            return array.transpose(3, 2, 0, 1)
        if array.ndim == 2:
            order = self._orders[name]
            return array.T if order is None else array.T[:, np.argsort(order)]
        return array

    def activation(self, name, array):
        """The output of a layer, as the job has it."""
        array = np.asarray(array)
        if array.ndim == 4:
            return array.transpose(0, 3, 1, 2)
        order = _order_of_flat(self._job, name) if array.ndim == 2 else None
        return array if order is None else array[:, np.argsort(order)]


def openmp_threads(part):
    """(threads, how read), for read_settings(): what the OpenMP runtime answers whose path has `part` in it
    ("libgomp"). It has to be mapped already."""
    return _threads_of("openmp", part)


def blas_threads(part):
    """The same of a BLAS: "libblas.so", "/numpy" for the one in NumPy's folder."""
    return _threads_of("blas", part)


def _threads_of(kind, part):
    for one in runtime.libraries():
        if one["kind"] == kind and part in one["path"] and one["threads"] is not None:
            return str(one["threads"]), "{} of {}".format(
                one["threads_getter"], os.path.basename(one["path"])
            )
    return None, "no {} library with '{}' in its path is mapped that tells its threads".format(kind, part)
