"""Caffe on the CPU, through pycaffe: nets from NetSpec, the SGD solver takes the steps."""

import ctypes
import os

import numpy as np
from timetrial_adapter import EVENLY_PADDED, BaseAdapter, bias_name, one_hot, pair, response_alpha


def _dense(node, bottoms, *_):
    units, bias = node.attributes["units"], bias_name(node) is not None
    return caffe.layers.InnerProduct(*bottoms, num_output=units, bias_term=bias)


def _conv2d(node, bottoms, *_):
    channels, bias = node.attributes["channels"], bias_name(node) is not None
    given = dict(_window(node), group=node.attributes["groups"], dilation=list(pair(node, "dilation")))
    return caffe.layers.Convolution(*bottoms, num_output=channels, bias_term=bias, **given)


def _conv_transpose2d(node, bottoms, *_):
    given = dict(_window(node), num_output=node.attributes["channels"], bias_term=bias_name(node) is not None)
    return caffe.layers.Deconvolution(*bottoms, convolution_param=given)


def _max_pool2d(node, bottoms, *_):
    return _pool(node, bottoms, caffe.params.Pooling.MAX)


def _avg_pool2d(node, bottoms, *_):
    return _pool(node, bottoms, caffe.params.Pooling.AVE)


def _pool(node, bottoms, method):
    # By default Caffe rounds up: a last window that does not fit whole.
    rounding = caffe.params.Pooling.FLOOR
    return caffe.layers.Pooling(*bottoms, pool=method, round_mode=rounding, **_window(node))


def _global_avg_pool2d(_node, bottoms, *_):
    mean = caffe.layers.Pooling(*bottoms, pool=caffe.params.Pooling.AVE, global_pooling=True)
    return caffe.layers.Flatten(mean)


def _local_response_norm(node, bottoms, *_):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    alpha = response_alpha(node, over_size=True)
    return caffe.layers.LRN(*bottoms, local_size=size, alpha=alpha, beta=beta, k=k)


def _window(node):
    return {
        "{}_{}".format(word, axis): size
        for key, word in (("kernel", "kernel"), ("stride", "stride"), ("padding", "pad"))
        for axis, size in zip("hw", pair(node, key))
    }


def _activation(node, bottoms, in_place):
    more = {"negative_slope": node.attributes["slope"]} if "slope" in node.attributes else {}
    return getattr(caffe.layers, ACTIVATIONS[node.kind])(*bottoms, in_place=in_place, **more)


def _dropout(_node, bottoms, *_):
    """By the mask that the batch brings."""
    return caffe.layers.Eltwise(*bottoms, operation=caffe.params.Eltwise.PROD)


# What Caffe calls them.
ACTIVATIONS = {"relu": "ReLU", "leaky_relu": "ReLU", "tanh": "TanH", "sigmoid": "Sigmoid"}
# Their backward pass does not read their output, so an activation may overwrite it, as Caffe's own nets do.
MAY_BE_OVERWRITTEN = {
    "dense": _dense,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
}
# Functions of (node, bottoms, whether to work in place).
LAYERS = {
    **MAY_BE_OVERWRITTEN,
    **dict.fromkeys(ACTIVATIONS, _activation),
    "global_avg_pool2d": _global_avg_pool2d,
    "local_response_norm": _local_response_norm,
    "flatten": lambda _, bottoms, *_more: caffe.layers.Flatten(*bottoms),
    "dropout": _dropout,
    "add": lambda _, bottoms, *_more: caffe.layers.Eltwise(*bottoms),
    "concat": lambda _, bottoms, *_more: caffe.layers.Concat(*bottoms, axis=1),
}
# Functions of (bottoms, by what the loss is multiplied).
LOSSES = {
    "softmax_cross_entropy": lambda bottoms, _: caffe.layers.SoftmaxWithLoss(*bottoms),
    "squared_error": lambda bottoms, scale: caffe.layers.EuclideanLoss(*bottoms, loss_weight=scale),
}

LIMITS = {"conv2d": EVENLY_PADDED, "conv_transpose2d": {"output_padding_h": 0, "output_padding_w": 0}}


class _Symbol(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def _file_of(function):
    """The file that a name means for every library, whatever that has inside; None: no such file."""
    everything = ctypes.CDLL(None)
    found = getattr(everything, function, None)
    symbol = _Symbol()
    if found is None or not everything.dladdr(ctypes.cast(found, ctypes.c_void_p), ctypes.byref(symbol)):
        return None
    return symbol.file.decode()


class Adapter(BaseAdapter):
    """See frameworks/README.md for the shape of an adapter."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS

    def load(self, settings):
        """Imports pycaffe; its BLAS has read its number of threads from the environment by then."""
        global caffe, caffe_pb2
        import caffe
        from caffe.proto import caffe_pb2

        caffe.set_mode_cpu()
        self._chooses = "blas.library" in settings
        # Who answers for cblas_sgemm: what was loaded before everything else, otherwise Caffe's own module or
        # what that is linked to.
        self._blas_file = _file_of("cblas_sgemm") or caffe._caffe.__file__
        self._library = ctypes.CDLL(self._blas_file)
        self.version = getattr(caffe, "__version__", "unknown")
        self.library = "Caffe {}".format(self.version)

    def read_settings(self):
        """The BLAS is asked: Caffe itself has no threads."""
        getter = getattr(self._library, "openblas_get_num_threads", None)
        if getter is None:
            read = {"threads": (None, "Caffe's BLAS is no OpenBLAS, and Caffe reports no number of threads")}
        else:
            read = {"threads": (str(getter()), "openblas_get_num_threads() of Caffe's BLAS")}
        if self._chooses:
            read["blas.library"] = (self._blas_file, "dladdr(cblas_sgemm)")
        return read

    def facts(self):
        """OpenBLAS' account of itself."""
        found = {"caffe.version": self.version}
        for fact, name in (("blas.version", "openblas_get_config"), ("blas.kernel", "openblas_get_corename")):
            getter = getattr(self._library, name, None)
            if getter is not None:
                getter.restype = ctypes.c_char_p
                found[fact] = getter().decode()
        return found

    def build(self, job, batch):
        """The solver's description; its net reads the batch's own memory."""
        images, labels = batch[job.sources[0]], batch[job.target]
        if "round_mode" not in caffe_pb2.PoolingParameter.DESCRIPTOR.fields_by_name:
            raise ImportError("this Caffe has no round_mode for pooling (2018); build a newer one")
        self._job, self._labels = job, labels
        # What is never learned needs no masks; inference between steps has masks of ones.
        self._masks = {} if job.task == "forward" else {name: batch[name] for name in job.masks}
        self._images = images.reshape(images.shape + (1,) * (4 - images.ndim))
        self._float_labels = np.empty((job.batch_size, 1, 1, 1), np.float32)
        self._squared = job.node(job.loss).kind == "squared_error"
        # EuclideanLoss is the sum over N and F divided by 2 N.
        self._loss_scale = 2.0 / job.classes if self._squared else 1.0
        solver = caffe_pb2.SolverParameter(
            type="SGD",
            base_lr=job.optimizer["learning_rate"],
            lr_policy="fixed",
            momentum=job.optimizer["momentum"],
            weight_decay=job.optimizer["weight_decay"],
            max_iter=2**31 - 1,
            snapshot_after_train=False,
            net_param=self._describe(),
        )
        self._file = os.path.join(job.folder, "solver.prototxt")
        with open(self._file, "w") as file:
            file.write(str(solver))
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer: a new solver."""
        self._solver = caffe.SGDSolver(self._file)
        self._net = self._solver.net
        self._net.set_input_arrays(self._images, self._float_labels)
        self._named = {
            name: blob
            for node in self._job.nodes
            for (name, _), blob in zip(node.parameters, self._net.params.get(node.name, ()))
        }
        for name, blob in self._named.items():
            blob.data[...] = self._job.parameters[name]

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        self._take_batch()
        self._solver.step(1)
        return self._loss()

    def gradient(self):
        """The same without update; gradients stay in the parameters."""
        self._take_batch()
        self._net.clear_param_diffs()
        self._net.forward()
        self._net.backward()
        return self._loss()

    def forward(self):
        """Inference: up to the prediction, not to the loss."""
        for name in self._masks:
            self._net.blobs[name].data[...] = 1
        return self._predict()

    def _predict(self):
        self._net.forward(end=self._job.output)
        return self._net.blobs[self._tops[self._job.output]].data

    def evaluate(self):
        """Inference between training steps."""
        return self.forward().copy()

    def parameters(self):
        """Name -> array."""
        return {name: blob.data.copy() for name, blob in self._named.items()}

    def gradients(self):
        """Of the last gradient(); a step turns them into updates."""
        return {name: blob.diff.copy() for name, blob in self._named.items()}

    def activations(self):
        """Of the layers that no activation overwrites, on the current batch."""
        self._take_batch()
        self._predict()
        last = {top: name for name, top in self._tops.items()}
        blobs = self._net.blobs
        return {name: blobs[top].data.copy() for top, name in last.items() if name != self._job.loss}

    def _loss(self):
        return float(self._net.blobs[self._job.loss].data) * self._loss_scale

    def _take_batch(self):
        """What the net does not read where the batch lies."""
        for name, mask in self._masks.items():
            self._net.blobs[name].data[...] = mask
        self._float_labels[:, 0, 0, 0] = self._labels
        if self._squared:
            self._net.blobs["target"].data[...] = one_hot(self._labels, self._job.classes)

    def _describe(self):
        """The net as NetParameter. `_tops`: layer -> the blob that holds its output."""
        job, net = self._job, caffe.NetSpec()
        n, channels, height, width = self._images.shape
        values = {}
        values["images"], values["labels"] = caffe.layers.MemoryData(
            batch_size=n, channels=channels, height=height, width=width, ntop=2
        )
        net["images"], net["labels"] = values["images"], values["labels"]
        if self._squared:
            shape = {"dim": [n, job.classes]}
            values["target"] = net["target"] = caffe.layers.Input(shape=shape)
        for name, mask in self._masks.items():
            values[name] = net[name] = caffe.layers.Input(shape={"dim": list(mask.shape)})
        self._tops = tops = {}
        for node in job.nodes:
            bottoms = [values[name] for name in node.inputs if name in values]
            if node.kind == "dropout" and not self._masks:
                values[node.name], tops[node.name] = bottoms[0], tops.get(node.inputs[0], node.inputs[0])
                continue
            in_place = self._overwrites(node)
            if node.name != job.loss:
                made = LAYERS[node.kind](node, bottoms, in_place)
            else:
                target = values["target"] if self._squared else bottoms[1]
                made = LOSSES[node.kind]((bottoms[0], target), self._loss_scale)
            values[node.name] = net[node.name] = made
            tops[node.name] = tops[node.inputs[0]] if in_place else node.name
        return net.to_proto()

    def _overwrites(self, node):
        """Whether a layer may work in place: nobody else reads its input."""
        source = node.inputs[0]
        readers = sum(source in other.inputs for other in self._job.nodes)
        return (
            node.kind in ACTIVATIONS
            and source not in self._job.inputs
            and source != self._job.output
            and self._job.node(source).kind in MAY_BE_OVERWRITTEN
            and readers == 1
        )
