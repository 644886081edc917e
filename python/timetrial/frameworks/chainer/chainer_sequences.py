"""Layers along time, in Chainer's functions: its recurrent ones take a list of samples, the longest first,
and compute the steps that count, as Chainer's NStepLSTM and its like do it."""

import numpy as np
from timetrial_adapter import directions, is_all


def _embedding(chainer, node, job):
    weight = np.array(job.parameters[node.name + ".weight"])
    return chainer.links.EmbedID(*weight.shape, initialW=weight)


def _recurrent(chainer, node, job):
    functions, units, parts = chainer.functions, node.attributes["units"], directions(node)
    is_continued, cell = node.kind.startswith("continued_"), node.kind.rpartition("_")[2]
    computes = getattr(functions, "n_step_" + ("bi" if len(parts) > 1 else "") + cell)
    gates, backwards = node.parameters[0][1][0] // units, len(parts) == 1 and parts[0].is_reverse

    class Recurrent(chainer.Link):
        """With the job's parameters, which Chainer's function takes gate by gate, in the same order."""

        def __init__(self):
            super(Recurrent, self).__init__()
            with self.init_scope():
                for name, _ in node.parameters:
                    parameter = chainer.Parameter(np.array(job.parameters[name]))
                    setattr(self, name[len(node.name) + 1 :], parameter)
            # The states of one that goes on from batch to batch.
            self.kept = [np.array(job.states[name]) for name, _ in node.states]

        def shown(self):
            """The states, as the job has them."""
            return {name[len(node.name) + 1 :]: one for (name, _), one in zip(node.states, self.kept)}

        def forward(self, x, second=None):
            """`second`: lengths, or the state in front of the first step."""
            count, steps = x.shape[:2]
            lengths = None if is_continued else second
            lengths = np.full(count, steps) if lengths is None else lengths
            order = np.argsort(-lengths, kind="stable")
            samples = functions.separate(chainer.as_variable(x))
            given = functions.transpose_sequence(self._turned([samples[n][: lengths[n]] for n in order]))
            starts = [np.zeros((len(parts), count, units), np.float32)] * (2 if cell == "lstm" else 1)
            goes_on = bool(self.kept) and chainer.config.train
            if is_continued:
                starts = [functions.expand_dims(second, 0)]
            if goes_on:
                starts = [one[None] for one in self.kept]
            weights = [self._gates(one, "weight") + self._gates(one, "recurrent_weight") for one in parts]
            biases = [self._gates(one, "bias") + self._gates(one, "recurrent_bias") for one in parts]
            last, *more, states = computes(1, 0.0, *starts, weights, biases, given)
            if goes_on:
                self.kept = [np.array(one.array[0]) for one in (last, *more)]
            back = np.argsort(order)
            if not is_all(node):
                return functions.concat([last[k] for k in range(len(parts))], axis=1)[back]
            found = self._turned(functions.transpose_sequence(states))
            return functions.pad_sequence([found[n] for n in back], steps, 0.0)

        def one_sample(self, steps):
            """Inputs of so many steps, all 0."""
            sequence = np.zeros((1, steps, node.parameters[0][1][1]), np.float32)
            return (sequence, np.zeros((1, units), np.float32)) if is_continued else (sequence,)

        def _turned(self, samples):
            """Chainer has a function for both directions, and for forward."""
            return [functions.flip(one, 0) for one in samples] if backwards else samples

        def _gates(self, part, which):
            own = "{}.{}".format(part.name, which)[len(node.name) + 1 :]
            if not hasattr(self, own):
                return [np.zeros(units, np.float32)] * gates
            return list(functions.split_axis(getattr(self, own), gates, 0, force_tuple=True))

    return Recurrent()


# Functions of (chainer, node, job) that make a link. Recurrent: Chainer's n_step_lstm, n_step_bilstm and the
# like; of a GRU the reset is behind.
LINKS = {
    "embedding": _embedding,
    "lstm": _recurrent,
    "stateful_lstm": _recurrent,
    "gru": _recurrent,
    "continued_gru": _recurrent,
    "rnn": _recurrent,
}
_BEHIND = {"reset_after": True}
LIMITS = {"gru": _BEHIND, "continued_gru": _BEHIND}


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

    # While it learns, one that goes on would.
    with Watch(), chainer.no_backprop_mode(), chainer.using_config("train", False):
        link(*link.one_sample(steps))
    products = sum(label == "LinearFunction" for label in labels)
    return "loop over the steps ({} matrix products)".format(products) if products else "fused function"
