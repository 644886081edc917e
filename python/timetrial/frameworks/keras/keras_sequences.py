"""Layers along time, in Keras 3's layers. What does not count is left out by a mask, as its users do it."""

from timetrial_adapter import ONE_BIAS, directions, is_all


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


class Recurrent(object):
    """A layer of each of the directions. One that goes backwards begins in the padding, whose mask lets no
    state go on from there, and gives all of its states in reverse."""

    def __init__(self, first, parts, gives_all):
        self.first, self._parts, self._gives_all = first, parts, gives_all

    def __call__(self, given):
        """Of a sequence, or of [sequence, lengths]."""
        from keras import ops

        found = []
        for one, part in zip(self.first, self._parts):
            made = Masked(one)(given)
            found.append(ops.flip(made, 1) if part.is_reverse and self._gives_all else made)
        return found[0] if len(found) == 1 else ops.concatenate(found, -1)


class Continued(object):
    """A layer that goes on from a state."""

    def __init__(self, layer):
        self.first = [layer]

    def __call__(self, given):
        """Of [sequence, state]."""
        sequence, state = given
        return self.first[0](sequence, initial_state=state)


def _embedding(layers, node, _padding, _format):
    return layers.Embedding(node.attributes["vocabulary"], node.attributes["units"], name=node.name)


def _of_direction(layers, node, part, **more):
    return getattr(layers, _KINDS[node.kind])(
        node.attributes["units"],
        use_bias=len(part.parameters) > 2,
        return_sequences=is_all(node),
        zero_output_for_mask=is_all(node),
        go_backwards=part.is_reverse,
        name=part.name.replace(".", ">"),  # on torch no name has a dot
        **more,
    )


def _recurrent(layers, node, _padding, _format):
    parts, more = directions(node), {}
    if node.kind.endswith("gru"):
        more["reset_after"] = node.attributes["reset_after"]
    made = [_of_direction(layers, node, part, **more) for part in parts]
    return Continued(*made) if node.kind.startswith("continued_") else Recurrent(made, parts, is_all(node))


def _carried(layers, node, _padding, _format):
    from keras import ops

    class Carried(layers.Layer):
        """It goes on from the states in `kept` while it learns, and leaves there what it comes to. Keras' own
        word, `stateful`, does so in inference too."""

        def __init__(self):
            super(Carried, self).__init__(name=node.name)
            self.first = [_of_direction(layers, node, part, return_state=True) for part in directions(node)]
            self.kept = [self._state(*one) for one in node.states]

        def _state(self, name, shape):
            name = name.replace(".", ">")
            return self.add_weight(shape=shape, initializer="zeros", trainable=False, name=name)

        def call(self, x, training=None):
            """Of a sequence."""
            if not training:
                return self.first[0](x)[0]
            # Copies: on torch the way back reads them when the states have moved.
            start = [ops.copy(one) for one in self.kept]
            found = self.first[0](x, initial_state=start)
            for one, value in zip(self.kept, found[1:]):
                one.assign(value)
            return found[0]

    return Carried()


def _mean_over_time(layers, node, _padding, _format):
    return Masked(layers.GlobalAveragePooling1D(name=node.name))


_KINDS = {
    "lstm": "LSTM",
    "stateful_lstm": "LSTM",
    "gru": "GRU",
    "continued_gru": "GRU",
    "rnn": "SimpleRNN",
}
# Functions of (keras.layers, node, padding in Keras' word, data format) that make a layer.
LAYERS = {
    "embedding": _embedding,
    **dict.fromkeys(_KINDS, _recurrent),
    "stateful_lstm": _carried,
    "mean_over_time": _mean_over_time,
}
# Two biases are moved by their sum; only a GRU with its reset behind the product has both.
LIMITS = {"lstm": ONE_BIAS, "stateful_lstm": ONE_BIAS, "rnn": ONE_BIAS}
_ZRN = (1, 0, 2)
GATES = {"gru": _ZRN, "continued_gru": _ZRN}


def parameters_of(node, layer):
    """Those of a layer in the job's order, of a recurrent one of all its directions; None for one that is not
    of this file. Of a GRU with two biases they are the rows of one variable, which stands here twice."""
    if node.kind == "embedding":
        return [layer.embeddings]
    if node.kind in _KINDS:
        biases, found = len(node.parameters) // len(layer) - 2, []
        for one in layer:
            found += [one.cell.kernel, one.cell.recurrent_kernel] + [one.cell.bias] * biases
        return found
    return None
