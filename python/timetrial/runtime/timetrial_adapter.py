"""What all adapters share. With timetrial_updates.py, symbolic_adapter.py and symbolic_sequences.py the only
module of ours that an adapter may import.

Syntax and modules of Python 3.6; frameworks/README.md has the shape of an adapter.
"""

import copy
import os

import numpy as np

runtime = None  # the module _timetrial_runtime: set by main.py


# For `limits` of an adapter: of convolutions without groups, without dilation, and with the same padding
# before and after; of recurrent layers without a second bias.
NO_LIMITS = {}
UNGROUPED = {"groups": 1}
ONE_BIAS = {"biases": (0, 1)}
UNDILATED = {"dilation_h": 1, "dilation_w": 1}
EVENLY_PADDED = {"padding_end_h": "padding_h", "padding_end_w": "padding_w"}


class BaseAdapter(object):
    """Defaults of an adapter. `mode` and `user_path` are set before load()."""

    tasks = ("train", "gradient", "forward")
    devices = ("cpu",)
    dtypes = ("f32",)
    # Rules, and options: "nesterov", "decoupled", "rate_inside", "schedule" (Job.rate), "clip_norm".
    optimizers = ("sgd",)
    layers = ()  # kinds of layers and losses: the keys of the adapter's own tables, (*LAYERS, *LOSSES)
    # What a kind cannot be asked for: kind -> attribute -> the one value it may have, a tuple of those it may
    # have, or the name of the attribute that it must be like: {"conv2d": {"groups": 1, "padding_end_h":
    # "padding_h"}}.
    limits = NO_LIMITS
    several_inputs = False  # whether layers may read more than one input of the network
    sequences = False  # whether layers may give sequences (N, T, F): dense, tanh and their like too
    version = ""
    library = ""
    # Through sequences of unequal lengths: values of the setting `lengths`, the default first.
    ways = ("padded",)
    # Steps of sequences that were computed so far, useful or not: counted where there are several ways.
    sequence_steps = None
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


class Values(dict):
    """Parameters and states of layers by the job's names. `moved`: where layers put what their states become,
    while something is learned; None in inference, where they read the states."""

    def __init__(self, tensors, learns):
        super(Values, self).__init__(tensors)
        self.moved = {} if learns else None


def borders(node):
    """((top, bottom), (left, right)) of "padding": they differ where "same" asks for an odd number."""
    a = node.attributes
    return tuple(
        (a["padding" + axis], a.get("padding_end" + axis, a["padding" + axis])) for axis in ("_h", "_w")
    )


def same_borders(node, shape):
    """What TensorFlow's "SAME" comes to for a window over images of this shape (N, C, H, W), as borders()."""
    found = []
    for axis, extent in zip(("_h", "_w"), shape[2:]):
        stride, kernel = node.attributes["stride" + axis], node.attributes["kernel" + axis]
        reach = (kernel - 1) * node.attributes.get("dilation" + axis, 1) + 1
        total = max((-(-extent // stride) - 1) * stride + reach - extent, 0)
        found.append((total // 2, total - total // 2))
    return tuple(found)


def source_shape(job, node):
    """The shape of what a layer reads first, in the job's layout."""
    source = node.inputs[0]
    return (job.inputs[source] if source in job.inputs else job.node(source)).shape


def response_alpha(node, over_size):
    """The alpha of a local_response_norm for a framework that divides it by the size, or not."""
    alpha, size = node.attributes["alpha"], node.attributes["size"]
    if bool(node.attributes["alpha_over_size"]) == over_size:
        return alpha
    return alpha * size if over_size else alpha / size


def biased_share(node):
    """By what the unbiased variance of a batch_norm's batch is multiplied to be the biased one: (n - 1) / n
    for n = N H W values."""
    count = np.prod(node.shape) / node.shape[1]
    return (count - 1) / count


def biased_variance(node, kept, initial, taken):
    """The running variance as the job has it, f32, where a framework `kept` that of unbiased variances, from
    the same initial value on, over so many batches. Both have the same share of the initial value, and what
    came to that is (n - 1) / n of what came to the framework's."""
    share, left = biased_share(node), (1 - node.attributes["momentum"]) ** taken
    return (share * np.asarray(kept, np.float64) + (1 - share) * left * initial).astype(np.float32)


def is_all(node):
    """Whether a recurrent layer gives all its states, (N, T, units), and not the last."""
    return node.attributes["output"] == "all"


def reads_lengths(node):
    """Whether a layer's second input says how many steps of each sample count: of one that goes on where
    another ended it is the state in front of the first step."""
    return len(node.inputs) > 1 and not node.kind.startswith("continued_")


def goes_on(node, values):
    """Whether a layer begins with its states, and leaves there what they come to: where something is
    learned."""
    return bool(node.states) and getattr(values, "moved", None) is not None


def carried(job):
    """Names of the states of layers that go on from batch to batch."""
    return [name for node in job.layers if is_recurrent(node) for name, _ in node.states]


def is_recurrent(node):
    """Whether a layer goes through the steps of a sequence one after the other."""
    return any(name.endswith(".recurrent_weight") for name, _ in node.parameters)


def directions(node):
    """A recurrent layer in each of its directions, as nodes: with the parameters, whose names begin with the
    node's, of one. `is_reverse`: its first step is a sample's last one that counts."""
    asked, found = node.attributes["direction"], []
    names = {"forward": [node.name], "reverse": [node.name]}.get(asked, [node.name, node.name + ".reverse"])
    each = len(node.parameters) // len(names)
    for place, name in enumerate(names):
        one = copy.copy(node)
        one.name, one.is_reverse = name, asked == "reverse" or place == 1
        one.parameters = node.parameters[place * each : (place + 1) * each]
        found.append(one)
    return found


def in_directions(parts, x, layer, turned, joined):
    """What a recurrent layer of these directions() gives, by layer(direction, x), which goes forward.
    turned(x) has the steps of each sample of (N, T, F) that count in reverse; joined(list) puts arrays beside
    each other, in their last axis."""
    found = []
    for one in parts:
        made = layer(one, turned(x) if one.is_reverse else x)
        found.append(turned(made) if one.is_reverse and is_all(one) else made)
    return found[0] if len(found) == 1 else joined(found)


def gates_in_order(array, order):
    """A parameter of a recurrent layer, whose first extent has the gates one behind the other, with gate
    `order[k]` in place k; np.argsort(order) leads back."""
    array = np.asarray(array)
    return array.reshape(len(order), -1, *array.shape[1:])[list(order)].reshape(array.shape)


def steps_of(job, node):
    """How many steps the sequences have that a layer reads."""
    return source_shape(job, node)[1]


def rounded_steps(longest, steps):
    """Of the setting lengths=rounded, how many steps are computed: the least number of eighths of all steps,
    in whole steps, that has room for the longest."""
    eighths = 8 * (longest - 1) // steps + 1
    return -(-steps * eighths // 8)


# What a recurrent layer that reads lengths computes, by the setting `lengths`, of `{}` steps.
_COMPUTED = {
    "padded": "all {} steps of every sample",
    "rounded": "of every sample as many steps as the longest of its batch has, rounded up to eighths of {}",
    "trimmed": "of every sample as many steps as the longest of its batch has",
    "packed": "the steps that count",
}


def path_facts(job, node, path, faster=None, way="padded"):
    """facts() of a recurrent layer: by which way the library computes it, as the library itself shows it.
    `faster`: how to get a way of the library that is known to be faster, if there is one. `way`: the setting
    `lengths`."""
    computed = _COMPUTED[way if reads_lengths(node) else "padded"].format(steps_of(job, node))
    found = {node.name + " forward": "{}, {}".format(path, computed)}
    if faster is not None:
        found[node.name + " faster"] = faster
    return found


def torch_operations(torch, call):
    """The names of torch's operations that a call comes to, one for each time; None: a torch too old to
    show them."""
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    with Watch():
        call()
    return seen


def jax_operations(jax, function, *inputs):
    """The names of JAX's primitives that a function of these arrays is made of, those inside others too."""
    found, left = set(), [jax.make_jaxpr(function)(*inputs).jaxpr]
    while left:
        for equation in left.pop().eqns:
            found.add(equation.primitive.name)
            for value in equation.params.values():
                inside = value if isinstance(value, (tuple, list)) else [value]
                inside = [getattr(one, "jaxpr", one) for one in inside]
                left += [one for one in inside if hasattr(one, "eqns")]
    return found


def weight_name(node):
    """'conv1.weight'; of a layer that is tied to an embedding that one's."""
    return node.attributes.get("tied", node.name) + ".weight"


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
            # One with parameters of its own has them in the job's order.
            passes_on = node.keeps_places and not node.parameters
            if keeps_order(job, node.name) if passes_on else node.kind != "dense":
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
    out), dense and recurrent weights as (in, out) and tables as they are: the ways there and back. `gates`:
    by kind of a recurrent layer the framework's order of its gates, where it is not the job's: of an lstm
    0 (i), 1 (f), 2 (g), 3 (o), of a gru 0 (r), 1 (z), 2 (n)."""

    def __init__(self, job, gates=None):
        self._job = job
        self._orders, self._tables, self._gates = {}, set(), {}
        for node in job.nodes:
            if node.kind == "dense":
                self._orders[weight_name(node)] = channels_last_order(job, node)
            elif node.kind == "embedding":
                self._tables.add(weight_name(node))
            elif node.kind in (gates or {}):
                self._gates.update((name, gates[node.kind]) for name, _ in node.parameters)

    def initial(self, name):
        """The initial value of a parameter, as the framework wants it."""
        array = np.array(self._job.parameters[name])
        if name in self._gates:
            array = gates_in_order(array, self._gates[name])
        if array.ndim == 4:
            return np.ascontiguousarray(array.transpose(2, 3, 1, 0))
        if array.ndim == 2 and name not in self._tables:
            order = self._orders.get(name)
            return np.ascontiguousarray((array if order is None else array[:, order]).T)
        return array

    def parameter(self, name, array):
        """A parameter's value, gradient or state, as the job has it."""
        array = np.asarray(array)
        if array.ndim == 4:
            return array.transpose(3, 2, 0, 1)
        if array.ndim == 2 and name not in self._tables:
            order = self._orders.get(name)
            array = array.T if order is None else array.T[:, np.argsort(order)]
        return gates_in_order(array, np.argsort(self._gates[name])) if name in self._gates else array

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
