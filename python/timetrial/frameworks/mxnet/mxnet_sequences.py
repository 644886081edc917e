"""Layers along time, in MXNet's operators: a recurrent layer is the fused RNN, which on the CPU goes over all
steps of the padded batch; what does not count is left out behind it."""

import json

from timetrial_adapter import directions, in_directions, is_all, reads_lengths


def _embedding(ops, node, tokens, weight):
    vocabulary, units = node.attributes["vocabulary"], node.attributes["units"]
    return ops.Embedding(tokens, weight, input_dim=vocabulary, output_dim=units)


def _recurrent(ops, node, x, *given):
    """Each direction is an operator of its own: in reverse it knows no lengths on the CPU."""
    lengths, given = _lengths(node, given)
    count = None if lengths is None else _count_of(ops, lengths)
    parts, each = directions(node), len(given) // len(directions(node))

    def layer(part, x):
        place = parts.index(part) * each
        return _forward(ops, part, x, count, given[place : place + each])

    def turned(x):
        how = {} if count is None else {"sequence_length": count, "use_sequence_length": True}
        return ops.swapaxes(ops.SequenceReverse(ops.swapaxes(x, dim1=0, dim2=1), **how), dim1=0, dim2=1)

    return in_directions(
        parts, x, layer, turned, lambda found: ops.concat(*found, dim=2 if is_all(node) else 1)
    )


def _continued(ops, node, x, state, *given):
    return _forward(ops, node, x, None, given, ops.expand_dims(state, axis=0))


def _carried(ops, node, x, *given):
    """Goes on from its states, which follow its parameters, and gives what they come to as well; without them
    it begins at 0."""
    given, before = given[: len(node.parameters)], given[len(node.parameters) :]
    if not before:
        return _forward(ops, node, x, None, given)
    found = _rnn(ops, node, x, given, [ops.expand_dims(one, axis=0) for one in before], state_outputs=True)
    moved = [ops.BlockGrad(ops.reshape(one, shape=(-3, 0))) for one in (found[1], found[2])]
    return [_shown(ops, node, found[0], None), *moved]


def _forward(ops, node, x, count, given, start=None):
    """`start`: the state in front of the first step, if it isn't 0."""
    start = ops.zeros((1, node.shape[0], node.attributes["units"])) if start is None else start
    states = _rnn(ops, node, x, given, [start] * (2 if _MODES[node.kind] == "lstm" else 1))
    return _shown(ops, node, states, count)


def _rnn(ops, node, x, given, start, state_outputs=False):
    """The gates have the job's order, and there are two biases; of one, the other is 0."""
    absent = 4 - len(node.parameters)
    flat = [ops.reshape(one, shape=(-1,)) for one in given]
    if absent:
        flat.append(ops.zeros((node.parameters[0][1][0] * absent,)))
    return ops.RNN(
        ops.swapaxes(x, dim1=0, dim2=1),
        ops.concat(*flat, dim=0),
        *start,
        state_size=node.attributes["units"],
        num_layers=1,
        mode=_MODES[node.kind],
        state_outputs=state_outputs,
    )


def _shown(ops, node, states, count):
    """All of them, samples first, or the last."""
    if count is not None:
        pick = ops.SequenceMask if is_all(node) else ops.SequenceLast
        states = pick(states, count, use_sequence_length=True)
    elif not is_all(node):
        last = ops.slice_axis(states, axis=0, begin=-1, end=None)
        states = ops.reshape(last, shape=(-1, node.attributes["units"]))
    return ops.swapaxes(states, dim1=0, dim2=1) if is_all(node) else states


def _mean_over_time(ops, _, x, lengths=None):
    if lengths is None:
        return ops.mean(x, axis=1)
    count = _count_of(ops, lengths)
    counted = ops.SequenceMask(ops.swapaxes(x, dim1=0, dim2=1), count, use_sequence_length=True)
    return ops.broadcast_div(ops.sum(counted, axis=0), ops.expand_dims(count, axis=1))


def _lengths(node, given):
    """Those of the samples, None where all are full; and the parameters."""
    return (given[0], given[1:]) if reads_lengths(node) else (None, given)


def _count_of(ops, lengths):
    return ops.cast(lengths, dtype="float32")


_MODES = {"lstm": "lstm", "stateful_lstm": "lstm", "gru": "gru", "continued_gru": "gru", "rnn": "rnn_tanh"}
# Functions of (ops, node, the layer's inputs, its parameters).
LAYERS = {
    "embedding": _embedding,
    **dict.fromkeys(_MODES, _recurrent),
    "stateful_lstm": _carried,
    "continued_gru": _continued,
    "mean_over_time": _mean_over_time,
}
# Its GRU has the reset behind the product.
_BEHIND = {"reset_after": True}
LIMITS = {"gru": _BEHIND, "continued_gru": _BEHIND}


def path_of(mx, node):
    """The words for a recurrent layer, of the operators that its symbol is made of."""
    names = [*node.inputs, *[name for name, _ in node.parameters]]
    made = LAYERS[node.kind](mx.sym, node, *map(mx.sym.Variable, names))
    operators = {one["op"] for one in json.loads(made.tojson())["nodes"]}
    return "fused operator (RNN)" if "RNN" in operators else "loop over the steps"
