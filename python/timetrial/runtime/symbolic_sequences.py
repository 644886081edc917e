"""Layers along time for Theano and its descendants: a scan over the steps of the padded batch, or of as many
as its longest sample has, the inputs' part of the gates computed for all of them at once. What does not count
is left out behind it. Syntax and modules of Python 3.6.
"""

from collections import namedtuple

from timetrial_adapter import directions, goes_on, in_directions, is_all, weight_name

WAYS = ("padded", "trimmed")

# The framework's own words: its module of tensors, its sigmoid, and scan(step, sequences, starts, constants),
# which gives a list of what each state became, (T, N, units). And one of WAYS.
Symbols = namedtuple("Symbols", "tensor sigmoid scan way")


def _embedding(node, values, tokens):
    return values[weight_name(node)][tokens]


def _parts(x, count, units):
    """Of (N, count x units) each part (N, units)."""
    return [x[:, k * units : (k + 1) * units] for k in range(count)]


def _lstm(symbols, node):
    tensor, sigmoid, units = symbols.tensor, symbols.sigmoid, node.attributes["units"]

    def step(z, h, c, recurrent):
        i, f, g, o = _parts(z + tensor.dot(h, recurrent), 4, units)
        c = sigmoid(f) * c + sigmoid(i) * tensor.tanh(g)
        return sigmoid(o) * tensor.tanh(c), c

    return step


def _gru(symbols, node):
    """The reset behind the product of h, or in front of it."""
    tensor, sigmoid, units = symbols.tensor, symbols.sigmoid, node.attributes["units"]

    def behind(a, h, recurrent, *bias):
        q = _parts(sum(bias, tensor.dot(h, recurrent)), 3, units)
        a = _parts(a, 3, units)
        r, z = sigmoid(a[0] + q[0]), sigmoid(a[1] + q[1])
        return (1 - z) * tensor.tanh(a[2] + r * q[2]) + z * h

    def in_front(a, h, recurrent):
        a, q = _parts(a, 3, units), _parts(tensor.dot(h, recurrent[:, : 2 * units]), 2, units)
        r, z = sigmoid(a[0] + q[0]), sigmoid(a[1] + q[1])
        return (1 - z) * tensor.tanh(a[2] + tensor.dot(r * h, recurrent[:, 2 * units :])) + z * h

    return behind if node.attributes["reset_after"] else in_front


def _rnn(symbols, _):
    def step(z, h, recurrent):
        return symbols.tensor.tanh(z + symbols.tensor.dot(h, recurrent))

    return step


_STEPS = {"lstm": _lstm, "stateful_lstm": _lstm, "gru": _gru, "continued_gru": _gru, "rnn": _rnn}


def _biases(node, values, *names):
    """Those of these that the layer has."""
    found = ["{}.{}".format(node.name, one) for one in names]
    return [values[name] for name in found if name in values]


def _states(node, values, x, state=None):
    """(T, N, units) of (N, T, F), whatever counts. `state`: in front of the first step, if it isn't 0."""
    symbols, units = values.symbols, node.attributes["units"]
    tensor = symbols.tensor
    sums = tensor.dot(x.dimshuffle(1, 0, 2), values[weight_name(node)].T)
    sums = sum(_biases(node, values, "bias"), sums)
    constants, second = [values[node.name + ".recurrent_weight"].T], _biases(node, values, "recurrent_bias")
    if node.kind.endswith("gru"):  # the reset may be behind it
        constants += second
    else:
        sums = sum(second, sums)
    starts = [tensor.zeros_like(sums[0, :, :units])] * (2 if node.kind.endswith("lstm") else 1)
    if state is not None:
        starts = [state]
    elif goes_on(node, values):
        starts = [values[name] for name, _ in node.states]
    found = symbols.scan(_STEPS[node.kind](symbols, node), sums, starts, constants)
    if goes_on(node, values):
        values.moved.update((name, states[-1]) for (name, _), states in zip(node.states, found))
    return found[0]


def _counted(tensor, x, lengths):
    """f32 (N, T): 1 at the steps that count."""
    steps = tensor.arange(x.shape[1]).dimshuffle("x", 0)
    return tensor.lt(steps, lengths.dimshuffle(0, "x")).astype("float32")


def _turned(tensor, x, lengths):
    """The steps of each sample that count in reverse; the others stay where they are."""
    if lengths is None:
        return x[:, ::-1]
    steps, lengths = tensor.arange(x.shape[1]).dimshuffle("x", 0), lengths.dimshuffle(0, "x")
    places = tensor.switch(tensor.lt(steps, lengths), lengths - 1 - steps, steps)
    return x[tensor.arange(x.shape[0]).dimshuffle(0, "x"), places]


def _recurrent(node, values, x, lengths=None):
    tensor, cuts = values.symbols.tensor, values.symbols.way == "trimmed" and lengths is not None

    def layer(part, x):
        given = x[:, : lengths.max()] if cuts else x
        states = _states(part, values, given)
        if not is_all(node):
            return states[-1] if lengths is None else states[lengths - 1, tensor.arange(x.shape[0])]
        states = states.dimshuffle(1, 0, 2)
        if lengths is None:
            return states
        states = states * _counted(tensor, given, lengths).dimshuffle(0, 1, "x")
        if not cuts:
            return states
        whole = tensor.zeros((x.shape[0], x.shape[1], node.attributes["units"]), "float32")
        return tensor.set_subtensor(whole[:, : lengths.max()], states)

    return in_directions(
        directions(node),
        x,
        layer,
        lambda x: _turned(tensor, x, lengths),
        lambda found: tensor.concatenate(found, axis=-1),
    )


def _continued(node, values, x, state):
    states = _states(node, values, x, state)
    return states.dimshuffle(1, 0, 2) if is_all(node) else states[-1]


def _mean_over_time(_node, values, x, lengths=None):
    if lengths is None:
        return x.mean(1)
    counted = _counted(values.symbols.tensor, x, lengths).dimshuffle(0, 1, "x")
    return (x * counted).sum(1) / lengths.astype("float32").dimshuffle(0, "x")


# Functions of (node, parameters by the job's names, with Symbols as `symbols`, the layer's inputs): a part of
# an adapter's own table.
LAYERS = {
    "embedding": _embedding,
    **dict.fromkeys(_STEPS, _recurrent),
    "continued_gru": _continued,
    "mean_over_time": _mean_over_time,
}


def path_of(given, made):
    """The words for a recurrent layer: which operations lead from what it was given to what it `made`."""
    left, seen, names = [made], set(given), set()
    while left:
        symbol = left.pop()
        if symbol in seen or symbol.owner is None:
            continue
        seen.add(symbol)
        names.add(type(symbol.owner.op).__name__)
        left += symbol.owner.inputs
    return "loop over the steps ({})".format("Scan" if "Scan" in names else "unrolled")
