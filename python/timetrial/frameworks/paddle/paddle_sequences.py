"""Layers along time, in Paddle's layers: its recurrent ones take lengths, and have two biases or one."""

from timetrial_adapter import directions, in_directions, is_all


class Layer(object):
    """Layers of Paddle's, `inner`, or none, and what is done around them: a function of its inputs."""

    def __init__(self, function, *inner):
        self.inner, self._function = inner, function

    def __call__(self, *inputs):
        """Of the sequence and, perhaps, lengths."""
        return self._function(*inputs)

    def parameters(self):
        """Those of the layers inside."""
        return [parameter for one in self.inner for parameter in one.parameters()]


def _named(paddle, node, which):
    """The attributes of a parameter. A bias that the job does not have is 0, and no optimizer's: Paddle's
    fused operator ends the process without one, and has no gradients where one needs none (3.3)."""
    name = "{}.{}".format(node.name, which)
    if any(name == one for one, _ in node.parameters):
        return paddle.ParamAttr(name=name)
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.0))


def _embedding(paddle, node):
    vocabulary, units = node.attributes["vocabulary"], node.attributes["units"]
    return paddle.nn.Embedding(vocabulary, units, weight_attr=_named(paddle, node, "weight"))


def _reversed(paddle, x, lengths):
    """(N, T, F) with the steps of each sample that count in reverse; the others stay where they are."""
    if lengths is None:
        return paddle.flip(x, [1])
    count, steps, features = x.shape
    place, lengths = paddle.arange(steps, dtype="int32").unsqueeze(0), lengths.unsqueeze(1)
    place = paddle.where(place < lengths, lengths - 1 - place, place)
    rows = place + steps * paddle.arange(count, dtype="int32").unsqueeze(1)
    found = paddle.gather(paddle.reshape(x, [-1, features]), paddle.reshape(rows, [-1]))
    return paddle.reshape(found, [count, steps, features])


def _forward(paddle, node):
    """Paddle's layer of one direction, which goes forward."""
    return getattr(paddle.nn, _KINDS[node.kind])(
        node.parameters[0][1][1],
        node.attributes["units"],
        weight_ih_attr=_named(paddle, node, "weight"),
        weight_hh_attr=_named(paddle, node, "recurrent_weight"),
        bias_ih_attr=_named(paddle, node, "bias"),
        bias_hh_attr=_named(paddle, node, "recurrent_bias"),
    )


def _recurrent(paddle, node):
    parts = directions(node)
    inner = [_forward(paddle, part) for part in parts]

    def states(x, lengths=None):
        lengths = None if lengths is None else paddle.cast(lengths, "int32")

        def layer(part, x):
            found, last = inner[parts.index(part)](x, sequence_length=lengths)
            if is_all(node):
                return found
            return last[0][0] if isinstance(last, tuple) else last[0]  # an LSTM has c beside h

        return in_directions(
            parts, x, layer, lambda x: _reversed(paddle, x, lengths), lambda found: paddle.concat(found, -1)
        )

    return Layer(states, *inner)


class Carried(Layer):
    """An LSTM that goes on from its two states while it learns, and leaves there what it comes to."""

    def __init__(self, paddle, node):
        rnn, zero = _forward(paddle, *directions(node)), paddle.nn.initializer.Constant(0.0)
        super(Carried, self).__init__(self._states, rnn)
        self._paddle, self._gives_all, self._learns = paddle, is_all(node), True

        def state(name, shape):
            given = paddle.ParamAttr(name=name, trainable=False, initializer=zero)
            return rnn.create_parameter(list(shape), attr=given)

        self._kept = [state(name, shape) for name, shape in node.states]

    def parameters(self):
        """Those of the layer inside, and the states."""
        return super(Carried, self).parameters() + self._kept

    def train(self):
        """From now on it goes on."""
        self._learns = True

    def eval(self):
        """From now on it begins at 0 and leaves the states alone."""
        self._learns = False

    def _states(self, x):
        if not self._learns:
            found, (last, _) = self.inner[0](x)
            return found if self._gives_all else last[0]
        # Copies: the way back reads them when the states have moved.
        start = [self._paddle.assign(one) for one in self._kept]
        found, moved = self.inner[0](x, tuple(one.unsqueeze(0) for one in start))
        with self._paddle.no_grad():
            for one, value in zip(self._kept, moved):
                self._paddle.assign(value[0], output=one)
        return found if self._gives_all else moved[0][0]


def _continued(paddle, node):
    rnn = _forward(paddle, node)

    def states(x, state):
        found, last = rnn(x, state.unsqueeze(0))
        return found if is_all(node) else last[0]

    return Layer(states, rnn)


def _mean_over_time(paddle, _):
    def mean(x, lengths=None):
        if lengths is None:
            return x.mean(axis=1)
        counted = paddle.nn.functional.sequence_mask(lengths, maxlen=x.shape[1], dtype="float32")
        count = paddle.cast(lengths, "float32").unsqueeze(1)
        return (x * counted.unsqueeze(2)).sum(axis=1) / count

    return Layer(mean)


_KINDS = {
    "lstm": "LSTM",
    "stateful_lstm": "LSTM",
    "gru": "GRU",
    "continued_gru": "GRU",
    "rnn": "SimpleRNN",
}
# Functions of (paddle, node) that make a layer.
LAYERS = {
    "embedding": _embedding,
    **dict.fromkeys(_KINDS, _recurrent),
    "stateful_lstm": Carried,
    "continued_gru": _continued,
    "mean_over_time": _mean_over_time,
}
# Its GRU has the reset behind the product.
_BEHIND = {"reset_after": True}
LIMITS = {"gru": _BEHIND, "continued_gru": _BEHIND}


def path_of(layer):
    """The words for a recurrent layer: by the attribute by which Paddle chooses, on the CPU too."""
    return "fused operator (rnn)" if layer.inner[0].could_use_cudnn else "loop over the steps"
