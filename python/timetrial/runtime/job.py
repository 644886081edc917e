"""The job file, read. processes/PROTOCOL.md explains every key. Syntax and modules of Python 3.6."""

import json
from collections import OrderedDict

import numpy as np
from failures import ContenderError

PROTOCOL = 2
DTYPES = {"f32": np.float32, "i64": np.int64}


class Node(object):
    """A layer: name, kind, names of its inputs, normalized attributes (whole numbers), shape of its output
    with N first, its parameters as a list of (name, shape), and its states (changed by training steps, but
    not trained) likewise. keeps_places: each value of its output stands where the value of its first input
    stood that it is made of. An input of the network has a dtype, a role
    ("input", "target", "mask", "lengths"), and `batch_shape`: the same in the layout of this contender."""

    def __init__(self, table):
        self.name = table["name"]
        self.kind = table["kind"]
        self.inputs = list(table["inputs"])
        self.attributes = dict(table["attributes"])
        self.shape = tuple(table["shape"])
        self.parameters = _of_role(table, "parameter")
        self.states = _of_role(table, "state")
        self.keeps_places = table.get("keeps_places", False)
        self.dtype = DTYPES.get(table.get("dtype"))
        self.role = table.get("role")
        self.batch_shape = self.shape


def _of_role(node, role):
    return [(one["name"], tuple(one["shape"])) for one in node["parameters"] if one["role"] == role]


class Job(object):
    """What an adapter is asked to build. Without a network (a callable that brings its own): no nodes, no
    inputs, output and loss None.

    inputs: what every batch brings, name -> Node, in order. nodes: layers in topological order.
    output, loss: names of the node that predicts (N x classes) and of the loss node.
    sources: names of the inputs that layers read; masks: of those among them that inference does not.
    target: name of the one that the loss holds the prediction against: i64 (N), below `classes`, or as many
    numbers as are predicted. losses: what is added up and minimized, as (Node, weight); the first is of the
    prediction. layers: the nodes that are no losses.
    layout: of inputs with height and width, "NCHW" or "NHWC", as environment.toml asks.
    parameters, states: initial values, name -> f32 array; copy them, they are mapped read-only.
    undecayed: names of the parameters that weight decay is not for.
    optimizer: {"name": "sgd", "learning_rate": ..., "momentum": ..., "weight_decay": ...}; flags that are on,
    and "clip_norm", only where they are asked for: then "options" lists them.
    """

    def __init__(self, path):
        with open(path) as file:
            table = json.load(file)
        if table.get("protocol") != PROTOCOL:
            words = "{}: protocol {}, expected {}".format(path, table.get("protocol"), PROTOCOL)
            raise ContenderError("crash", words)
        self.name = table["backend"]["name"]
        self.adapter = table["backend"].get("adapter")
        self.callable = table["backend"].get("callable")
        self.user_path = table["backend"].get("path")
        self.tree = table["backend"].get("tree", [])  # another checkout, and in whose place it stands
        self.runtime = table["runtime"]
        self.folder = table["folder"]
        self.task = table["task"]
        self.device = table["device"]
        self.dtype = table["dtype"]
        self.batch_size = table["batch_size"]  # None: a callable that was given none
        self.settings = dict(table["settings"])
        self.flush_to_zero = self.settings.pop("flush_to_zero", None)  # nothing that an adapter applies
        self.setup = self.settings.pop("setup", None)  # of a callable: the word of what is called before it
        self.optimizer = dict(table["optimizer"])
        self.rates = np.load(self.optimizer["rates"]) if "rates" in self.optimizer else None
        self.streams = dict(table["streams"])
        self.sys_path = list(table.get("sys_path", []))
        self.working_folder = table.get("working_folder")
        network = table["network"] or {"nodes": [], "output": None, "loss": None}
        nodes = [Node(node) for node in network["nodes"]]
        self.layout = table.get("layout", "NCHW")
        self.inputs = OrderedDict((node.name, node) for node in nodes if node.kind == "input")
        for node in self.inputs.values():
            if self.layout == "NHWC" and len(node.shape) == 4:
                node.batch_shape = tuple(node.shape[axis] for axis in (0, 2, 3, 1))
        self.nodes = [node for node in nodes if node.kind != "input"]
        self.output = network["output"]
        self.loss = network["loss"]
        self.parameters, self.states = {}, {}
        self.undecayed = {
            p["name"] for node in network["nodes"] for p in node["parameters"] if not p["decays"]
        }
        self._parameter_tables = [p for node in network["nodes"] for p in node["parameters"]]
        if nodes:
            self.losses = self._losses()
            self.layers = [node for node in self.nodes if node.shape]
            self.target = self.losses[0][0].inputs[1]
            read = {name for node in self.layers for name in node.inputs}
            self.sources = [name for name in self.inputs if name in read]
            self.masks = [name for name in self.sources if self.inputs[name].role == "mask"]
            self.classes = int(next(node for node in nodes if node.name == self.output).shape[-1])

    def read_parameters(self):
        """Maps the initial values; checks their shapes."""
        for table in self._parameter_tables:
            values = np.load(table["file"], mmap_mode="r")
            if values.shape != tuple(table["shape"]) or values.dtype != np.float32:
                raise ContenderError(
                    "crash",
                    "{}: {} {}, expected float32 {}".format(
                        table["file"], values.dtype, values.shape, tuple(table["shape"])
                    ),
                )
            (self.states if table["role"] == "state" else self.parameters)[table["name"]] = values

    def rate(self, step):
        """The learning rate of the step behind so many since reset()."""
        if self.rates is None:
            return self.optimizer["learning_rate"]
        return float(self.rates[min(step, len(self.rates) - 1)])

    def _losses(self):
        whole = self.node(self.loss)
        if whole.kind != "loss_sum":
            return [(whole, 1.0)]
        return list(zip([self.node(name) for name in whole.inputs], whole.attributes["weights"]))

    def node(self, name):
        """The layer of this name."""
        return next(node for node in self.nodes if node.name == name)
