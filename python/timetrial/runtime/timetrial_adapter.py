"""What all adapters share. The only module of ours that an adapter may import, under this name.

Syntax and modules of Python 3.6; frameworks/README.md has the shape of an adapter.
"""

import ctypes
import os

import numpy as np

LAYERS = (
    "dense",
    "conv2d",
    "max_pool2d",
    "avg_pool2d",
    "relu",
    "tanh",
    "sigmoid",
    "flatten",
    "softmax_cross_entropy",
    "squared_error",
)


class BaseAdapter(object):
    """Defaults of an adapter. `mode` and `user_path` are set before load()."""

    tasks = ("train", "gradient", "forward")
    devices = ("cpu",)
    dtypes = ("f32",)
    optimizers = ("sgd",)
    layers = LAYERS
    image_layout = "NCHW"  # or "NHWC": the order in which build() gets images, arranged before any step
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

    def tensors(self, role):
        """Name -> array, by one method per role: parameters(), gradients(), activations(), velocities()."""
        method = {
            "parameter": "parameters",
            "gradient": "gradients",
            "activation": "activations",
            "optimizer": "velocities",
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
    source = node.inputs[0]
    while source not in job.inputs and job.node(source).kind != "flatten":
        kind = job.node(source).kind
        if kind not in ("relu", "tanh", "sigmoid"):
            return None
        source = job.node(source).inputs[0]
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


def openmp_threads(library):
    """(threads, how read), for read_settings(): what the OpenMP runtime called so ("libgomp") answers.
    The one that is mapped is asked, so it has to be in use already."""
    return _ask_library((library,), ("omp_get_max_threads",))


def _ask_library(prefixes, getters):
    """(what the first of these getters answers, its name and file) in the first mapped library whose name
    begins with one of the prefixes; (None, why) where there is none."""
    with open("/proc/self/maps") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    for path in sorted(f for f in files if os.path.basename(f).startswith(prefixes) and ".so" in f):
        library = ctypes.CDLL(path)  # mapped already: the same copy
        for getter in getters:
            if hasattr(library, getter):
                return str(getattr(library, getter)()), "{}() of {}".format(getter, os.path.basename(path))
    return None, "no {} is mapped that has {}()".format("* or ".join(prefixes) + "*", " or ".join(getters))


def blas_threads(*prefixes):
    """The same of the BLAS whose file's name begins so: "libblas.so", "libscipy_openblas"."""
    return _ask_library(prefixes, _BLAS_GETTERS)


_BLAS_GETTERS = (
    "openblas_get_num_threads",
    "scipy_openblas_get_num_threads",
    "scipy_openblas_get_num_threads64_",
    "bli_thread_get_num_threads",
    "MKL_Get_Max_Threads",
)
