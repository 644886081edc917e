"""Layers along time, in Keras 3's layers. What does not count is left out by a mask, as its users do it."""

from timetrial_adapter import ONE_BIAS, is_all


class Masked(object):
    """A layer, `first`, that is told by a mask which of its steps count."""

    def __init__(self, first):
        self.first = first

    def __call__(self, given):
        """Of a sequence, or of [sequence, lengths]."""
        if not isinstance(given, list):
            return self.first(given)
        from keras import ops

        sequence, lengths = given
        steps = ops.expand_dims(ops.arange(sequence.shape[1], dtype="int32"), 0)
        return self.first(sequence, mask=ops.less(steps, ops.expand_dims(lengths, 1)))


def _embedding(layers, node, _padding, _format):
    return layers.Embedding(node.attributes["vocabulary"], node.attributes["units"], name=node.name)


def _recurrent(layers, node, _padding, _format):
    gives_all, more = is_all(node), {}
    if node.kind == "gru":
        more["reset_after"] = node.attributes["reset_after"]
    return Masked(
        getattr(layers, _KINDS[node.kind])(
            node.attributes["units"],
            use_bias=len(node.parameters) > 2,
            return_sequences=gives_all,
            zero_output_for_mask=gives_all,
            name=node.name,
            **more,
        )
    )


def _mean_over_time(layers, node, _padding, _format):
    return Masked(layers.GlobalAveragePooling1D(name=node.name))


_KINDS = {"lstm": "LSTM", "gru": "GRU", "rnn": "SimpleRNN"}
# Functions of (keras.layers, node, padding in Keras' word, data format) that make a layer.
LAYERS = {"embedding": _embedding, **dict.fromkeys(_KINDS, _recurrent), "mean_over_time": _mean_over_time}
# Two biases are moved by their sum; only a GRU with its reset behind the product has both.
LIMITS = {"lstm": ONE_BIAS, "rnn": ONE_BIAS}
GATES = {"gru": (1, 0, 2)}  # z, r, n


def parameters_of(node, layer):
    """Those of a layer in the job's order; None for one that is not of this file. Of a GRU with two biases
    they are the rows of one variable, which stands here twice."""
    if node.kind == "embedding":
        return [layer.embeddings]
    if node.kind in _KINDS:
        cell = layer.cell
        return [cell.kernel, cell.recurrent_kernel] + [cell.bias] * (len(node.parameters) - 2)
    return None
