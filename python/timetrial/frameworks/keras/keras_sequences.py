"""Layers along time, in Keras 3's layers. What does not count is left out by a mask, as its users do it."""


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


def _lstm(layers, node, _padding, _format):
    gives_all = node.attributes["output"] == "all"
    return Masked(
        layers.LSTM(
            node.attributes["units"],
            use_bias=node.attributes["biases"] > 0,
            return_sequences=gives_all,
            zero_output_for_mask=gives_all,
            name=node.name,
        )
    )


def _mean_over_time(layers, node, _padding, _format):
    return Masked(layers.GlobalAveragePooling1D(name=node.name))


# Functions of (keras.layers, node, padding in Keras' word, data format) that make a layer.
LAYERS = {"embedding": _embedding, "lstm": _lstm, "mean_over_time": _mean_over_time}


def parameters_of(node, layer):
    """Those of a layer in the job's order; None for one that is not of this file."""
    if node.kind == "embedding":
        return [layer.embeddings]
    if node.kind == "lstm":
        cell = layer.cell
        return [cell.kernel, cell.recurrent_kernel] + ([cell.bias] if cell.use_bias else [])
    return None
