"""Layers along time, in Chainer's functions: its recurrent ones take a list of samples, the longest first,
and compute the steps that count, as Chainer's NStepLSTM and its like do it."""

import numpy as np
from timetrial_adapter import is_all


def _embedding(chainer, node, job):
    weight = np.array(job.parameters[node.name + ".weight"])
    return chainer.links.EmbedID(*weight.shape, initialW=weight)


def _recurrent(chainer, node, job):
    functions, units = chainer.functions, node.attributes["units"]
    computes, gates = getattr(functions, _FUNCTIONS[node.kind]), node.parameters[0][1][0] // units

    class Recurrent(chainer.Link):
        """With the job's parameters, which Chainer's function takes gate by gate, in the same order."""

        def __init__(self):
            super(Recurrent, self).__init__()
            with self.init_scope():
                for name, _ in node.parameters:
                    parameter = chainer.Parameter(np.array(job.parameters[name]))
                    setattr(self, name[len(node.name) + 1 :], parameter)

        def forward(self, x, lengths=None):
            count, steps = x.shape[:2]
            lengths = np.full(count, steps) if lengths is None else lengths
            order = np.argsort(-lengths, kind="stable")
            samples = functions.separate(chainer.as_variable(x))
            given = functions.transpose_sequence([samples[n][: lengths[n]] for n in order])
            starts = [np.zeros((1, count, units), np.float32)] * (2 if node.kind == "lstm" else 1)
            weights = self._gates("weight") + self._gates("recurrent_weight")
            biases = self._gates("bias") + self._gates("recurrent_bias")
            last, *_, states = computes(1, 0.0, *starts, [weights], [biases], given)
            back = np.argsort(order)
            if not is_all(node):
                return last[0][back]
            found = functions.transpose_sequence(states)
            return functions.pad_sequence([found[n] for n in back], steps, 0.0)

        def _gates(self, which):
            if not hasattr(self, which):
                return [np.zeros(units, np.float32)] * gates
            return list(functions.split_axis(getattr(self, which), gates, 0, force_tuple=True))

    return Recurrent()


# Functions of (chainer, node, job) that make a link.
_FUNCTIONS = {"lstm": "n_step_lstm", "gru": "n_step_gru", "rnn": "n_step_rnn"}  # of a GRU the reset is behind
LINKS = {"embedding": _embedding, **dict.fromkeys(_FUNCTIONS, _recurrent)}
LIMITS = {"gru": {"reset_after": True}}


def _linked(_, chain, node, *inputs):
    return getattr(chain, node.name)(*inputs)


def _mean_over_time(functions, _chain, _node, x, lengths=None):
    if lengths is None:
        return functions.mean(x, axis=1)
    counted = (np.arange(x.shape[1]) < lengths[:, None]).astype(np.float32)[:, :, None]
    return functions.sum(x * counted, axis=1) / lengths[:, None].astype(np.float32)


# Functions of (chainer.functions, chain, node, the layer's inputs).
LAYERS = {**dict.fromkeys(LINKS, _linked), "mean_over_time": _mean_over_time}


def path_of(chainer, link, steps):
    """The words for a recurrent layer: of which functions it makes how many for one sample."""
    labels = []

    class Watch(chainer.FunctionHook):
        name = "timetrial"

        def forward_postprocess(self, function, _):
            labels.append(function.label)

    features = link.weight.shape[1]
    with Watch(), chainer.no_backprop_mode():
        link(np.zeros((1, steps, features), np.float32))
    products = sum(label == "LinearFunction" for label in labels)
    return "loop over the steps ({} matrix products)".format(products) if products else "fused function"
